import { importJWK } from "jose";
import { type Algorithm, type PublishedKey, readJwk } from "../jwk.ts";
import type { KeySet } from "../key-set.ts";
import {
  type Checked,
  checkClaims,
  type Expectations,
  findKey,
  isSignature,
  type Refused,
  refuse,
  splitToken,
} from "../token-rules.ts";
import { decodeBytes, decodeText } from "./segment.ts";

const encoder = new TextEncoder();

const ALGORITHMS = {
  ES256: { name: "ECDSA", hash: "SHA-256" },
  EdDSA: { name: "Ed25519" },
  RS256: { name: "RSASSA-PKCS1-v1_5" },
} as const satisfies Record<Algorithm, object>;

/** A key with which the WebCrypto of the runtime verifies. */
export type Key = Omit<PublishedKey, "verifies"> & {
  readonly verifies: (input: Uint8Array<ArrayBuffer>, signature: Uint8Array<ArrayBuffer>) => Promise<boolean>;
};

/**
 * Imports a JWK (RFC 7517). Returns undefined if its use, type or curve is not that of a key for access tokens. It rejects if the runtime
 * fails or does not support the algorithm: a key set without that key would cause valid tokens to be refused.
 */
export async function importKey(jwk: unknown): Promise<Key | undefined> {
  const read = readJwk(jwk);
  if (read === undefined) return undefined;
  const { kid, alg, members } = read;
  const key = await importJWK(members as Parameters<typeof importJWK>[0], alg).catch(ignoreBadKey);
  if (key === undefined || key instanceof Uint8Array) return undefined;
  const verifies: Key["verifies"] = (input, signature) =>
    crypto.subtle.verify(ALGORITHMS[alg], key as CryptoKey, signature, input);
  return { kid, alg, material: JSON.stringify(members), withdrawn: false, verifies };
}

/** Returns undefined if the members are not a valid key (WebCrypto section 18.4: DataError). @throws every other error */
function ignoreBadKey(error: unknown): undefined {
  if (error instanceof DOMException && error.name === "DataError") return undefined;
  throw error;
}

/** Checks a token like `checkToken` for Node (src/verifier/token.ts), but with the WebCrypto of the runtime. */
export async function checkToken(token: string, keys: KeySet<Key>, expected: Expectations): Promise<Checked | Refused> {
  const parts = splitToken(token);
  if (parts === undefined) return refuse("malformed");
  const payload = decodeText(token.slice(parts.dot + 1, parts.end));
  const signature = decodeBytes(token.slice(parts.end + 1));
  if (payload === undefined || signature === undefined || !isSignature(signature.length)) return refuse("malformed");
  const found = findKey(decodeText(token.slice(0, parts.dot)), keys);
  if (!found.ok) return found;
  const input = encoder.encode(token.slice(0, parts.end));
  if (!(await found.key.verifies(input, signature))) return refuse("forged");
  // The key may have been withdrawn while the signature was verified. The second check then no longer finds the key.
  return found.key.withdrawn ? checkToken(token, keys, expected) : checkClaims(payload, found.key, expected);
}
