/** Reads the keys of an issuer (RFC 7517). This file is used in every runtime. */

/** The accepted algorithms. They are all asymmetric; `none` is not accepted. */
const ALGORITHMS = {
  ES256: { kty: "EC", crv: "P-256" },
  EdDSA: { kty: "OKP", crv: "Ed25519" },
} as const;
export type Algorithm = keyof typeof ALGORITHMS;

export type PublishedKey = {
  readonly kid: string;
  readonly alg: Algorithm;
  /** The public members of the key. Two keys with the same `kid` are equal if their members are equal. */
  readonly material: string;
  /** Whether the issuer has revoked the key, or no longer publishes it. Tokens that it signed are then no longer valid. */
  withdrawn: boolean;
  /** Returns whether a signature is valid. It rejects if the runtime fails, because the signature is then not known to be forged. */
  readonly verifies: (input: Uint8Array<ArrayBuffer>, signature: Uint8Array<ArrayBuffer>) => boolean | Promise<boolean>;
};

/** Imports a JWK; undefined if it is not a key for access tokens. */
export type ImportKey<Key extends PublishedKey> = (jwk: unknown) => Key | undefined | Promise<Key | undefined>;

/** Matches 32 bytes in their only encoding (RFC 7518 sections 6.2.1.2 and 6.3). Not every runtime is as strict. */
const COORDINATE = /^[\w-]{42}[AEIMQUYcgkosw048]$/;

/** Returns the public members of a JWK; undefined if its use, type, curve or coordinates are not those of a key for access tokens. */
export function readJwk(jwk: unknown) {
  if (typeof jwk !== "object" || jwk === null) return undefined;
  const { kid, alg, use = "sig", key_ops = ["verify"], kty, crv, x, y } = jwk as Readonly<Record<string, unknown>>;
  const algorithm = (Object.keys(ALGORITHMS) as Algorithm[]).find(
    (name) => ALGORITHMS[name].kty === kty && ALGORITHMS[name].crv === crv && (alg ?? name) === name,
  );
  if (typeof kid !== "string" || use !== "sig" || algorithm === undefined) return undefined;
  // Section 4.3 of RFC 7517 allows other operations beside `verify`.
  if (!Array.isArray(key_ops) || !key_ops.includes("verify")) return undefined;
  const coordinates = algorithm === "ES256" ? [x, y] : [x];
  if (!coordinates.every((each) => typeof each === "string" && COORDINATE.test(each))) return undefined;
  const members = algorithm === "ES256" ? { kty, crv, x, y } : { kty, crv, x }; // Private members of a JWK are ignored.
  return { kid, alg: algorithm, members };
}
