import { KeyObject, verify } from "node:crypto";
import { importJWK, type JWK } from "jose";

/** The algorithms that are accepted at all. Neither `none` nor anything symmetric can get in. */
export const ALGORITHMS = {
  ES256: { digest: "sha256", kty: "EC", crv: "P-256" },
  EdDSA: { digest: null, kty: "OKP", crv: "Ed25519" },
} as const;
export type Algorithm = keyof typeof ALGORITHMS;

/** A key of the issuer's JWKS. */
export type Key = {
  readonly kid: string;
  readonly alg: Algorithm;
  /** Its public members: two keys of one `kid` are the same when these are. */
  readonly material: string;
  /** Whether the issuer stopped publishing it, or revoked it: nothing verified under it counts any more. */
  withdrawn: boolean;
  readonly check: (input: Uint8Array, signature: Uint8Array) => boolean;
};

/** A key from a JWK (RFC 7517), or undefined for one that is not for us: another use, kind or curve. */
export async function importKey(jwk: unknown): Promise<Key | undefined> {
  if (typeof jwk !== "object" || jwk === null) return undefined;
  const { kid, alg, use = "sig", key_ops = ["verify"], kty, crv, x, y } = jwk as JWK & { kid?: unknown };
  const algorithm = (Object.keys(ALGORITHMS) as Algorithm[]).find(
    (name) => ALGORITHMS[name].kty === kty && ALGORITHMS[name].crv === crv && (alg ?? name) === name,
  );
  if (typeof kid !== "string" || use !== "sig" || algorithm === undefined) return undefined;
  if (!Array.isArray(key_ops) || !key_ops.includes("verify")) return undefined; // RFC 7517 §4.3
  const shared = algorithm === "ES256" ? { kty, crv, x, y } : { kty, crv, x }; // public members alone, whatever is there
  const imported = await importJWK(shared as JWK, algorithm).catch(() => undefined);
  if (imported === undefined || imported instanceof Uint8Array) return undefined;
  // Node verifies with it at once; Web Crypto would take a turn of the event loop, and longer.
  const key = KeyObject.from(imported);
  const options = { key, dsaEncoding: "ieee-p1363" } as const; // r ‖ s (RFC 7518 §3.4)
  const { digest } = ALGORITHMS[algorithm];
  const check: Key["check"] = (input, signature) => verify(digest, input, options, signature);
  return { kid, alg: algorithm, material: JSON.stringify(shared), withdrawn: false, check };
}
