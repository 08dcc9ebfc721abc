import type { Key } from "./key.ts";
import { importKey } from "./key.ts";
import { KeySet, type KeySetDeps } from "./key-set.ts";
import { KnownSignatures } from "./known-signatures.ts";
import { decodeText } from "./segment.ts";
import {
  type Checked,
  checkClaims,
  type Expectations,
  findKey,
  MAX_LENGTH,
  type Refused,
  refuse,
  SIGNATURE_BYTES,
  splitToken,
} from "./token-rules.ts";

/** Reused buffers for the signing input and the signature. They can be shared because one token is checked at a time. */
const input = Buffer.alloc(MAX_LENGTH);
const signature = Buffer.alloc(SIGNATURE_BYTES);

/** A key set for verification by Node. */
export class NodeKeySet extends KeySet<Key> {
  /** Remembers whether the signatures of recent tokens are valid. */
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
  if (payload === undefined || !readSignature(token.slice(end + 1))) return refuse("malformed");

  const header = token.slice(0, dot);
  const known = keys.headers.get(header);
  const found = known === undefined ? findKey(decodeText(header), keys) : undefined;
  if (found?.ok === false) return found;
  const key = known ?? (found as { readonly key: Key }).key;
  const isAuthentic = keys.signatures.isValid(token, key, () => {
    input.write(token, 0, end, "latin1"); // The text is ASCII, because the segments are base64url.
    return key.verifies(input.subarray(0, end), signature);
  });
  if (!isAuthentic) return refuse("forged");
  if (known === undefined) keys.rememberHeader(header, key);
  return checkClaims(payload, key, expected);
}

/** Decodes a segment into `signature`. Returns whether it is canonical base64url of the right length. */
function readSignature(segment: string): boolean {
  return signature.write(segment, "base64url") === SIGNATURE_BYTES && signature.toString("base64url") === segment;
}
