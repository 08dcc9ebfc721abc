import { generateKeyPairSync, hash, type KeyObject, randomBytes } from "node:crypto";
import { RSA_BITS } from "../../platform/jws/public-key.ts";
import type { SigningAlg } from "./jws.ts";
import type { Jwk, Ring, RingKey } from "./ring.ts";

const GENERATE = {
  ES256: () => generateKeyPairSync("ec", { namedCurve: "P-256" }),
  EdDSA: () => generateKeyPairSync("ed25519"),
  // Larger keys would take several times as long for each signature.
  RS256: () => generateKeyPairSync("rsa", { modulusLength: RSA_BITS.min }),
} as const satisfies Record<SigningAlg, () => { readonly privateKey: KeyObject }>;

/** Makes a new signing key in the state `published`. Its kid is its thumbprint (RFC 7638). */
export function generateSigningKey(alg: SigningAlg, now: number): RingKey {
  const jwk = GENERATE[alg]().privateKey.export({ format: "jwk" });
  const kid = thumbprint(jwk);
  // A kid that begins with a dash would be taken for an option on a command line.
  return kid.startsWith("-") ? generateSigningKey(alg, now) : { kid, alg, state: "published", since: now, jwk };
}

/** Makes a new MAC key in the state `published`. Its kid is four random bytes, which every refresh token contains. */
export function generateMacKey(now: number): RingKey {
  const jwk = { kty: "oct", k: randomBytes(32).toString("base64url") };
  return { kid: randomBytes(4).toString("hex"), alg: "HS256", state: "published", since: now, jwk };
}

/** Makes a ring for a new service. Each kind has a signing key and a published successor. @param alg undefined: ES256 */
export function generateRing(alg: SigningAlg | undefined, now: number): Ring {
  const pair = (generate: () => RingKey): RingKey[] => [{ ...generate(), state: "signing" }, generate()];
  return { signing: pair(() => generateSigningKey(alg ?? "ES256", now)), mac: pair(() => generateMacKey(now)) };
}

/** Returns the thumbprint of a key (RFC 7638). */
export function thumbprint({ crv, e, kty, n, x, y }: Jwk): string {
  // The members must be in lexicographic order, without spaces (section 3). `stringify` omits the members that this type of key lacks.
  return hash("sha256", JSON.stringify({ crv, e, kty, n, x, y }), "base64url");
}
