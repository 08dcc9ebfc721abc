/** Which public keys are accepted, wherever one is read or registered. This file is used in every runtime. */

import { decodeBytes } from "./segment.ts";

type Jwk = Readonly<Record<string, unknown>>;
/** The required members of a public key, in the order of RFC 7638 section 3.2. */
export type PublicMembers = Readonly<Record<string, string>>;
export type KeyAlgorithm = "ES256" | "EdDSA" | "RS256";

/**
 * Why a key of the right form is refused: `off_curve`: it is not a point of P-256 (RFC 7518 section 6.2.1). `small_order`: it is a point of
 * Ed25519 for which anybody can sign (RFC 8032 section 8.9, "small subgroup").
 */
export type KeyFault = "off_curve" | "small_order";

const COORDINATE_BYTES = 32;
/** The size of an accepted RSA key, in bits. The CAEP interoperability profile requires 2,048; larger keys cost too much. */
export const RSA_BITS = { min: 2048, max: 4096 } as const;
/** The length of a signature by ES256 and EdDSA, in bytes. */
const SHORT_SIGNATURE_BYTES = 64;
/** The only accepted RSA exponent, 65,537 in base64url. Smaller exponents help forgers, and not every runtime imports larger ones. */
export const RSA_EXPONENT = "AQAB";

/**
 * Reads the members of a public JWK (RFC 7517) of P-256, Ed25519 or RSA (2,048 to 4,096 bits) in canonical encoding. Returns undefined for
 * any other value. `findKeyFault` checks what costs more.
 */
export function readPublicMembers(algorithm: KeyAlgorithm, jwk: Jwk): PublicMembers | undefined {
  const { kty, crv, e, n, x, y } = jwk;
  if (algorithm === "RS256") return kty === "RSA" && e === RSA_EXPONENT && isModulus(n) ? { e, kty, n } : undefined;
  if (!isCoordinate(x)) return undefined;
  if (algorithm === "EdDSA") return kty === "OKP" && crv === "Ed25519" ? { crv, kty, x } : undefined;
  return kty === "EC" && crv === "P-256" && isCoordinate(y) ? { crv, kty, x, y } : undefined;
}

/** Returns why a key that `readPublicMembers` has read must not be used; undefined if it may be. */
export function findKeyFault({ crv, x = "", y }: PublicMembers): KeyFault | undefined {
  if (crv === "P-256") return isPoint(x, y) ? undefined : "off_curve";
  return crv === "Ed25519" && isOfSmallOrder(x) ? "small_order" : undefined;
}

/** Returns whether a signature of an accepted algorithm may have this length. Whether the key's own has it is checked with the key. */
export function isSignature({ length }: Uint8Array): boolean {
  return length === SHORT_SIGNATURE_BYTES || (length >= RSA_BITS.min / 8 && length <= RSA_BITS.max / 8);
}

function isCoordinate(text: unknown): text is string {
  return typeof text === "string" && decodeBytes(text)?.length === COORDINATE_BYTES;
}

/** Returns whether a text is an odd modulus of an accepted size, without leading zeros (Base64urlUInt, RFC 7518 section 2). */
function isModulus(text: unknown): text is string {
  const modulus = typeof text === "string" ? decodeBytes(text) : undefined;
  if (!modulus?.[0]) return false;
  const bits = 8 * modulus.length - (Math.clz32(modulus[0]) - 24);
  const isOdd = (modulus.at(-1) ?? 0) % 2 === 1;
  return bits >= RSA_BITS.min && bits <= RSA_BITS.max && isOdd;
}

/** The prime of the field of Ed25519, and the y coordinates of its eight points of small order, also those that are not reduced. */
const P = 2n ** 255n - 19n;
const Y8 = 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n;
const SMALL_ORDER_Y: ReadonlySet<bigint> = new Set([0n, 1n, Y8, P - Y8, P - 1n, P, P + 1n]);

/** Returns whether a point of Ed25519 has the order 1, 2, 4 or 8. Its last bit is the sign of x (RFC 8032 section 5.1.2). */
function isOfSmallOrder(text: string): boolean {
  const bytes = decodeBytes(text) ?? new Uint8Array();
  const y = bytes.reduceRight(
    (sum, byte, at) => sum * 256n + BigInt(at === COORDINATE_BYTES - 1 ? byte & 127 : byte),
    0n,
  );
  return SMALL_ORDER_Y.has(y);
}

/** The prime and the constant of the curve P-256, y² = x³ − 3x + b (FIPS 186-5). */
const P256_PRIME = 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n;
const P256_B = 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn;

/** Returns whether the coordinates of a JWK are a point on the curve (RFC 7518 section 6.2.1). Not every WebCrypto checks that. */
export function isPoint(xText: unknown, yText: unknown): boolean {
  const [x, y] = [readCoordinate(xText), readCoordinate(yText)];
  return x !== undefined && y !== undefined && (y * y - x * x * x + 3n * x - P256_B) % P256_PRIME === 0n;
}

function readCoordinate(text: unknown): bigint | undefined {
  const bytes = typeof text === "string" ? decodeBytes(text) : undefined;
  if (bytes?.length !== COORDINATE_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  let value = 0n;
  for (let at = 0; at < COORDINATE_BYTES; at += 8) value = (value << 64n) | view.getBigUint64(at);
  return value < P256_PRIME ? value : undefined;
}
