import { createPublicKey, type KeyObject, verify } from "node:crypto";

/** The accepted algorithms. They are all asymmetric; `none` is not accepted. */
const ALGORITHMS = {
  ES256: { digest: "sha256", kty: "EC", crv: "P-256" },
  EdDSA: { digest: null, kty: "OKP", crv: "Ed25519" },
} as const;
export type Algorithm = keyof typeof ALGORITHMS;

/** A key of the issuer's JWKS. */
export type Key = {
  readonly kid: string;
  readonly alg: Algorithm;
  /** The public members of the key: two keys with one `kid` are the same if these are equal. */
  readonly material: string;
  /** Whether the issuer has revoked the key or stopped publishing it. Tokens that it verified are then not valid any more. */
  withdrawn: boolean;
  readonly verifies: (input: Uint8Array, signature: Uint8Array) => boolean;
};

/** Imports a JWK (RFC 7517); undefined if its use, type or curve is not that of a key for access tokens. */
export function importKey(jwk: unknown): Key | undefined {
  if (typeof jwk !== "object" || jwk === null) return undefined;
  const { kid, alg, use = "sig", key_ops = ["verify"], kty, crv, x, y } = jwk as Readonly<Record<string, unknown>>;
  const algorithm = (Object.keys(ALGORITHMS) as Algorithm[]).find(
    (name) => ALGORITHMS[name].kty === kty && ALGORITHMS[name].crv === crv && (alg ?? name) === name,
  );
  if (typeof kid !== "string" || use !== "sig" || algorithm === undefined) return undefined;
  if (!Array.isArray(key_ops) || !key_ops.includes("verify")) return undefined; // RFC 7517 section 4.3
  const members = algorithm === "ES256" ? { kty, crv, x, y } : { kty, crv, x }; // a private member is never used
  const key = importPublicKey(members);
  if (key === undefined) return undefined;
  const options = { key, dsaEncoding: "ieee-p1363" } as const; // the signature is r ‖ s (RFC 7518 section 3.4)
  const { digest } = ALGORITHMS[algorithm];
  const verifies: Key["verifies"] = (input, signature) => verify(digest, input, options, signature);
  return { kid, alg: algorithm, material: JSON.stringify(members), withdrawn: false, verifies };
}

/** Returns undefined if the members are not a public key, such as a point that is not on the curve. */
function importPublicKey(members: Readonly<Record<string, unknown>>): KeyObject | undefined {
  try {
    return createPublicKey({ key: { ...members }, format: "jwk" });
  } catch {
    return undefined;
  }
}
