import { isUtf8 } from "node:buffer";
import { verify } from "node:crypto";
import { importPublicKey } from "./dpop/verify-proof.ts";
import { type Algorithm, type PublishedKey, readJwk } from "./jwk.ts";
import { KeySet, type KeySetDeps } from "./key-set.ts";
import { KnownSignatures } from "./known-signatures.ts";
import {
  type Checked,
  checkClaims,
  type Expectations,
  findKey,
  isSignature,
  MAX_LENGTH,
  MAX_SIGNATURE_BYTES,
  type Refused,
  refuse,
  splitToken,
} from "./token-rules.ts";

const DIGESTS = { ES256: "sha256", EdDSA: null, RS256: "sha256" } as const satisfies Record<Algorithm, string | null>;

/** A key with which Node verifies within one turn of the event loop. */
export type Key = Omit<PublishedKey, "verifies"> & {
  readonly verifies: (input: Uint8Array, signature: Uint8Array) => boolean;
};

/** Imports a JWK (RFC 7517). Returns undefined if its use, type or curve is not that of a key for access tokens. */
export function importKey(jwk: unknown): Key | undefined {
  const read = readJwk(jwk);
  const key = read && importPublicKey(read.members);
  if (read === undefined || key === undefined) return undefined;
  const { kid, alg, members } = read;
  const options = { key, dsaEncoding: "ieee-p1363" } as const; // The signature is r ‖ s (RFC 7518 section 3.4).
  const digest = DIGESTS[alg];
  const verifies: Key["verifies"] = (input, signature) => verify(digest, input, options, signature);
  return { kid, alg, material: JSON.stringify(members), withdrawn: false, verifies };
}

/** Reused buffers for the signing input and the signature. They can be shared because one token is checked at a time. */
const input = Buffer.alloc(MAX_LENGTH);
const signature = Buffer.alloc(MAX_SIGNATURE_BYTES);

export class NodeKeySet extends KeySet<Key> {
  readonly signatures = new KnownSignatures<Key>();

  constructor(deps: KeySetDeps) {
    super(deps, importKey);
  }
}

/** Checks a token with only the keys and the clock. The result `unknown_key` may change with newer keys. */
export function checkToken(token: string, keys: NodeKeySet, expected: Expectations): Checked | Refused {
  const parts = splitToken(token);
  if (parts === undefined) return refuse("malformed");
  const { dot, end } = parts;
  const payload = decodeText(token.slice(dot + 1, end));
  const signatureBytes = readSignature(token.slice(end + 1));
  if (payload === undefined || !isSignature(signatureBytes)) return refuse("malformed");

  const header = token.slice(0, dot);
  const known = keys.headers.get(header);
  const found = known === undefined ? findKey(decodeText(header), keys) : undefined;
  if (found?.ok === false) return found;
  const key = known ?? (found as { readonly key: Key }).key;
  const isAuthentic = keys.signatures.isValid(token, key, () => {
    input.write(token, 0, end, "latin1"); // The text is ASCII, because the segments are base64url.
    return key.verifies(input.subarray(0, end), signature.subarray(0, signatureBytes));
  });
  if (!isAuthentic) return refuse("forged");
  if (known === undefined) keys.rememberHeader(header, key);
  return checkClaims(payload, key, expected);
}

/** Decodes a segment into `signature`. Returns its length in bytes, which is 0 unless the segment is canonical base64url. */
function readSignature(segment: string): number {
  const length = signature.write(segment, "base64url");
  return signature.toString("base64url", 0, length) === segment ? length : 0;
}

/** Segments are decoded into this buffer, one at a time. Most of the cost of decoding would be the allocation of new buffers. */
let scratch = Buffer.alloc(4096);

/**
 * Returns the text of a base64url segment. Returns undefined unless its bytes are UTF-8 and the segment is canonical: encoding the bytes
 * again gives the same segment (RFC 4648 section 3.5).
 */
function decodeText(segment: string): string | undefined {
  if (scratch.length < segment.length) scratch = Buffer.alloc(segment.length);
  const length = scratch.write(segment, "base64url");
  if (scratch.toString("base64url", 0, length) !== segment) return undefined;
  const text = scratch.toString("utf8", 0, length);
  // Bytes that are not UTF-8 decode to U+FFFD, which a valid text may contain too.
  return text.includes("\ufffd") && !isUtf8(scratch.subarray(0, length)) ? undefined : text;
}
