import { importPublicKey, isSignedBy } from "../platform/dpop/verify-proof.ts";
import type { CompactJws } from "../platform/jws/compact-jws.ts";
import { KnownSignatures } from "../platform/jws/known-signatures.ts";
import { decodeText } from "../platform/jws/segment.ts";
import { type PublishedKey, readJwk } from "./keys/jwk.ts";
import { KeySet, type KeySetDeps } from "./keys/key-set.ts";
import { type Checked, checkClaims, type Expectations, findKey, readToken, refuse } from "./token-rules.ts";
import type { RefusalVerdict } from "./verdict.ts";

/** A key with which Node verifies within one turn of the event loop. */
export type Key = Omit<PublishedKey, "verifies"> & {
  readonly verifies: (jws: CompactJws) => boolean;
};

/** Imports a JWK (RFC 7517). Returns undefined if its use, type or curve is not that of a key for access tokens. */
export function importKey(jwk: unknown): Key | undefined {
  const read = readJwk(jwk);
  const key = read && importPublicKey(read.members);
  if (read === undefined || key === undefined) return undefined;
  const { kid, alg, members } = read;
  const verifies: Key["verifies"] = (jws) => isSignedBy(key, alg, jws);
  return { kid, alg, material: JSON.stringify(members), withdrawn: false, verifies };
}

export class NodeKeySet extends KeySet<Key> {
  readonly signatures = new KnownSignatures<Key>();

  constructor(deps: KeySetDeps) {
    super(deps, importKey);
  }
}

/** Checks a token with only the keys and the clock. The result `unknown_key` may change with newer keys. */
export function checkToken(token: string, keys: NodeKeySet, expected: Expectations): Checked | RefusalVerdict {
  const jws = readToken(token);
  const payload = jws && decodeText(jws.payload);
  if (jws === undefined || payload === undefined) return refuse("malformed");
  const known = keys.headers.get(jws.header);
  const found = known === undefined ? findKey(jws, keys) : undefined;
  if (found?.ok === false) return found;
  const key = known ?? (found as { readonly key: Key }).key;
  if (!keys.signatures.isValid(token, key, () => key.verifies(jws))) return refuse("forged");
  if (known === undefined) keys.rememberHeader(jws.header, key);
  return checkClaims(payload, key, expected);
}
