import { type KeyObject, sign } from "node:crypto";
import type { Signed } from "../../platform/dpop/verify-proof.ts";

/**
 * The signature algorithms of the service: ES256 by default (the fastest to sign), EdDSA (Ed25519), or RS256, which RFC 9068 section 2.1
 * requires of every issuer, and many gateways accept alone.
 */
export const SIGNING_ALGS = ["ES256", "EdDSA", "RS256"] as const;
export type SigningAlg = (typeof SIGNING_ALGS)[number];

export function isSigningAlg(value: unknown): value is SigningAlg {
  return (SIGNING_ALGS as readonly unknown[]).includes(value);
}

const DIGEST = { ES256: "sha256", EdDSA: null, RS256: "sha256" } as const;

/** The type of the service's access tokens (RFC 9068 §2.1). */
export const TYP = "at+jwt";

/** Returns the header segment of every token of a key. */
export function headerSegment(alg: SigningAlg, kid: string): string {
  return Buffer.from(JSON.stringify({ typ: TYP, alg, kid })).toString("base64url");
}

/** Returns the signature segment for a signing input (RFC 7515 §5.1; ECDSA as r ‖ s, RFC 7518 §3.4). */
export type Signer = (input: string) => string;

export function createSigner(alg: SigningAlg, privateKey: KeyObject): Signer {
  const key = { key: privateKey, dsaEncoding: "ieee-p1363" } as const;
  return (input) => sign(DIGEST[alg], Buffer.from(input, "latin1"), key).toString("base64url");
}

export type SignatureCheck = (signed: Signed) => boolean;
