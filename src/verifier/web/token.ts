import { importJWK } from "jose";
import type { CompactJws } from "../../platform/jws/compact-jws.ts";
import { decodeText } from "../../platform/jws/segment.ts";
import { type Algorithm, type PublishedKey, readJwk } from "../keys/jwk.ts";
import type { KeySet } from "../keys/key-set.ts";
import { type Checked, checkClaims, type Expectations, findKey, readToken, refuse } from "../token-rules.ts";
import type { RefusalVerdict } from "../verdict.ts";

const encoder = new TextEncoder();

const ALGORITHMS = {
  ES256: { name: "ECDSA", hash: "SHA-256" },
  EdDSA: { name: "Ed25519" },
  RS256: { name: "RSASSA-PKCS1-v1_5" },
} as const satisfies Record<Algorithm, object>;

/** A key with which the WebCrypto of the runtime verifies. */
export type Key = Omit<PublishedKey, "verifies"> & {
  readonly verifies: (jws: CompactJws) => Promise<boolean>;
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
  const verifies: Key["verifies"] = ({ input, signature }) =>
    crypto.subtle.verify(ALGORITHMS[alg], key as CryptoKey, signature, encoder.encode(input));
  return { kid, alg, material: JSON.stringify(members), withdrawn: false, verifies };
}

/** Returns undefined if the members are not a valid key (WebCrypto section 18.4: DataError). @throws every other error */
function ignoreBadKey(error: unknown): undefined {
  if (error instanceof DOMException && error.name === "DataError") return undefined;
  throw error;
}

/** Checks a token like `checkToken` for Node (src/verifier/token.ts), but with the WebCrypto of the runtime. */
export async function checkToken(
  token: string,
  keys: KeySet<Key>,
  expected: Expectations,
): Promise<Checked | RefusalVerdict> {
  const jws = readToken(token);
  const payload = jws && decodeText(jws.payload);
  if (jws === undefined || payload === undefined) return refuse("malformed");
  const found = findKey(jws, keys);
  if (!found.ok) return found;
  if (!(await found.key.verifies(jws))) return refuse("forged");
  // The key may have been withdrawn while the signature was verified. The second check then no longer finds the key.
  return found.key.withdrawn ? checkToken(token, keys, expected) : checkClaims(payload, found.key, expected);
}
