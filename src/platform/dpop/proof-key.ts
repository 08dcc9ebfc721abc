/** Reads the public key in a proof of possession. Every runtime accepts the same keys. */
import { type PublicMembers, readPublicMembers } from "../jws/public-key.ts";

/** The accepted algorithms. `Ed25519` is the newer name of `EdDSA` with that curve (RFC 9864). */
export const PROOF_ALGORITHMS = ["ES256", "RS256", "EdDSA", "Ed25519"] as const;
export type ProofAlgorithm = (typeof PROOF_ALGORITHMS)[number];

export type ProofKey = {
  readonly algorithm: ProofAlgorithm;
  /** The required members of the public key, in the order of RFC 7638 section 3.2. */
  readonly members: PublicMembers;
};

/**
 * The members of private and symmetric keys (RFC 7518 section 6). A client that sends one does not keep its key secret, so it is refused.
 */
const PRIVATE_MEMBERS = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"] as const;

/**
 * Reads a public JWK (RFC 7517) of P-256, Ed25519 or RSA (2,048 to 4,096 bits), in canonical encoding and without private members.
 * Returns undefined for any other value. `findKeyFault` checks its point when the key is imported.
 */
export function readProofKey(algorithm: ProofAlgorithm, value: unknown): ProofKey | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const jwk = value as Readonly<Record<string, unknown>>;
  if (PRIVATE_MEMBERS.some((name) => Object.hasOwn(jwk, name))) return undefined;
  if (jwk.alg !== undefined && jwk.alg !== algorithm) return undefined;
  const members = readPublicMembers(algorithm === "Ed25519" ? "EdDSA" : algorithm, jwk);
  return members && { algorithm, members };
}

/** Returns the text whose SHA-256 is the thumbprint of a key (RFC 7638 section 3). */
export function thumbprintInput({ members }: ProofKey): string {
  return JSON.stringify(members);
}
