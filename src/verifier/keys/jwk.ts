/** Reads the keys of an issuer (RFC 7517). This file is used in every runtime. */
import type { CompactJws } from "../../platform/jws/compact-jws.ts";
import { findKeyFault, type KeyAlgorithm, readPublicMembers } from "../../platform/jws/public-key.ts";

/** The accepted algorithms of access tokens. They are all asymmetric; `none` is not accepted. */
export type Algorithm = KeyAlgorithm;
export const ALGORITHMS = ["ES256", "EdDSA", "RS256"] as const satisfies readonly Algorithm[];

export function isAlgorithm(value: unknown): value is Algorithm {
  return (ALGORITHMS as readonly unknown[]).includes(value);
}

export type PublishedKey = {
  readonly kid: string;
  readonly alg: Algorithm;
  /** The public members of the key. Two keys with the same `kid` are equal if their members are equal. */
  readonly material: string;
  /** Whether the issuer has revoked the key, or no longer publishes it. Tokens that it signed are then no longer valid. */
  withdrawn: boolean;
  /** Returns whether a signature is valid. It rejects if the runtime fails, because the signature is then not known to be forged. */
  readonly verifies: (jws: CompactJws) => boolean | Promise<boolean>;
};

/** Imports a JWK; undefined if it is not a key for access tokens. */
export type ImportKey<Key extends PublishedKey> = (jwk: unknown) => Key | undefined | Promise<Key | undefined>;

const TYPE = "at+jwt";

/** Returns the public members of a JWK; undefined if its use, type or members are not those of a key for access tokens. */
export function readJwk(jwk: unknown) {
  if (typeof jwk !== "object" || jwk === null) return undefined;
  const {
    kid,
    alg,
    use = "sig",
    key_ops = ["verify"],
    token_types = [TYPE],
  } = jwk as Readonly<Record<string, unknown>>;
  if (typeof kid !== "string" || use !== "sig") return undefined;
  // Section 4.3 of RFC 7517 allows other operations beside `verify`.
  if (!Array.isArray(key_ops) || !key_ops.includes("verify")) return undefined;
  // A member of this service: the tokens that the key signs. Keys of security events sign no access tokens.
  if (!Array.isArray(token_types) || !token_types.includes(TYPE)) return undefined;
  for (const name of ALGORITHMS) {
    // Private members of a JWK are ignored.
    const members =
      (alg ?? name) === name ? readPublicMembers(name, jwk as Readonly<Record<string, unknown>>) : undefined;
    if (members !== undefined) return findKeyFault(members) ? undefined : { kid, alg: name, members };
  }
  return undefined;
}
