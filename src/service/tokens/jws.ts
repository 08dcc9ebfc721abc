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
  const textOf = alg === "ES256" ? joinedText : (signature: Buffer) => signature.toString("base64url");
  return (input) => textOf(sign(DIGEST[alg], Buffer.from(input, "latin1"), privateKey));
}

export type SignatureCheck = (input: string, signature: string) => boolean;

export function createSignatureCheck(alg: SigningAlg, publicKey: KeyObject): SignatureCheck {
  const key = { key: publicKey, dsaEncoding: "ieee-p1363" } as const;
  return (input, signature) =>
    verify(DIGEST[alg], Buffer.from(input, "latin1"), key, Buffer.from(signature, "base64url"));
}

/** The length of r and of s on P-256, in bytes. */
const PART = 32;

const joined = Buffer.alloc(2 * PART);

/**
 * Converts an ECDSA signature on P-256 from DER, which OpenSSL makes, to r ‖ s, which JWS needs (RFC 7518 §3.4), in base64url. Node's own
 * conversion (`dsaEncoding: "ieee-p1363"`) takes 1.4 to 2 µs, more than a hundredth of a refresh.
 */
export function joinedText(der: Uint8Array): string {
  // The header of the sequence has two bytes, because the whole is shorter than 128 bytes.
  const second = copyInteger(der, 2, 0);
  copyInteger(der, second, PART);
  return joined.toString("base64url", 0, 2 * PART);
}

/** Copies an integer of a DER signature to a part of `joined`, without the zero byte that DER may put first. @returns the index after it */
function copyInteger(der: Uint8Array, at: number, to: number): number {
  const end = at + 2 + (der[at + 1] ?? 0);
  const start = Math.max(at + 2, end - PART);
  const padding = PART - (end - start);
  joined.fill(0, to, to + padding);
  joined.set(der.subarray(start, end), to + padding);
  return end;
}
