import { type KeyObject, sign, verify } from "node:crypto";

/** The signature algorithms of the service: ES256 by default (the fastest to sign), or EdDSA (Ed25519) by configuration. */
export type SigningAlg = "ES256" | "EdDSA";

export function isSigningAlg(value: unknown): value is SigningAlg {
  return value === "ES256" || value === "EdDSA";
}

const DIGEST = { ES256: "sha256", EdDSA: null } as const;

/** Matches a signature: 64 bytes, which are 86 characters. The last character has four spare bits, which must be zero. */
export const SIGNATURE = /^[A-Za-z0-9_-]{85}[AQgw]$/;

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
