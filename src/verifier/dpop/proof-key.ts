/** Reads the public key in a proof of possession. Every runtime accepts the same keys. */
import { decodeBytes } from "../web/segment.ts";

/** The accepted algorithms. `Ed25519` is the newer name of `EdDSA` with that curve (RFC 9864). */
export const PROOF_ALGORITHMS = ["ES256", "RS256", "EdDSA", "Ed25519"] as const;
export type ProofAlgorithm = (typeof PROOF_ALGORITHMS)[number];

export type ProofKey = {
  readonly algorithm: ProofAlgorithm;
  /** The required members of the public key, in the order of RFC 7638 section 3.2. */
  readonly members: Readonly<Record<string, string>>;
};

type Jwk = Readonly<Record<string, unknown>>;

const COORDINATE_BYTES = 32;
const RSA_BITS = { min: 2048, max: 4096 } as const;
/** The only accepted RSA exponent, 65,537 in base64url. Smaller exponents help forgers, and not every runtime imports larger ones. */
const RSA_EXPONENT = "AQAB";

/**
 * The members of private and symmetric keys (RFC 7518 section 6). A client that sends one does not keep its key secret, so it is refused.
 */
const PRIVATE_MEMBERS = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"] as const;

/**
 * Reads a public JWK (RFC 7517) of P-256, Ed25519 or RSA (2,048 to 4,096 bits), in canonical encoding and without private members.
 * Returns undefined for any other value. Whether a point is on its curve is checked when the key is imported.
 */
export function readProofKey(algorithm: ProofAlgorithm, value: unknown): ProofKey | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const jwk = value as Jwk;
  if (PRIVATE_MEMBERS.some((name) => Object.hasOwn(jwk, name))) return undefined;
  if (jwk.alg !== undefined && jwk.alg !== algorithm) return undefined;
  const members = algorithm === "ES256" ? ecMembers(jwk) : algorithm === "RS256" ? rsaMembers(jwk) : edMembers(jwk);
  return members && { algorithm, members };
}

/** Returns the text whose SHA-256 is the thumbprint of a key (RFC 7638 section 3). */
export function thumbprintInput({ members }: ProofKey): string {
  return JSON.stringify(members);
}

function ecMembers({ kty, crv, x, y }: Jwk) {
  return kty === "EC" && crv === "P-256" && isCoordinate(x) && isCoordinate(y) ? { crv, kty, x, y } : undefined;
}

function edMembers({ kty, crv, x }: Jwk) {
  return kty === "OKP" && crv === "Ed25519" && isCoordinate(x) ? { crv, kty, x } : undefined;
}

function rsaMembers({ kty, n, e }: Jwk) {
  if (kty !== "RSA" || typeof n !== "string" || e !== RSA_EXPONENT) return undefined;
  const modulus = decodeBytes(n);
  // A Base64urlUInt (RFC 7518 section 2) has no leading zero.
  if (!modulus?.[0]) return undefined;
  const bits = 8 * modulus.length - (Math.clz32(modulus[0]) - 24);
  const isOdd = (modulus.at(-1) ?? 0) % 2 === 1;
  return bits >= RSA_BITS.min && bits <= RSA_BITS.max && isOdd ? { e, kty, n } : undefined;
}

function isCoordinate(text: unknown): text is string {
  return typeof text === "string" && decodeBytes(text)?.length === COORDINATE_BYTES;
}
