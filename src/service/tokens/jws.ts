import { type KeyObject, sign, verify } from "node:crypto";

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

/** Matches a signature of 64 bytes, which are 86 characters. The last character has four spare bits, which must be zero. */
const SHORT_SIGNATURE = /^[A-Za-z0-9_-]{85}[AQgw]$/;
/** The length of the shortest signature by RS256, in characters. */
const MIN_RSA_SIGNATURE_LENGTH = 342;

/** Returns whether a text is a signature in its only encoding. The check of a key refuses signatures of another length than its own. */
export function isSignature(text: string): boolean {
  if (text.length < MIN_RSA_SIGNATURE_LENGTH) return SHORT_SIGNATURE.test(text);
  return Buffer.from(text, "base64url").toString("base64url") === text;
}

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

export type SignatureCheck = (input: string, signature: string) => boolean;

export function createSignatureCheck(alg: SigningAlg, publicKey: KeyObject): SignatureCheck {
  const key = { key: publicKey, dsaEncoding: "ieee-p1363" } as const;
  return (input, signature) =>
    verify(DIGEST[alg], Buffer.from(input, "latin1"), key, Buffer.from(signature, "base64url"));
}
