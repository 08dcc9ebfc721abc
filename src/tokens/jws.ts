import { type KeyObject, sign, verify } from "node:crypto";
import { joinedText } from "./der-signature.ts";

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
