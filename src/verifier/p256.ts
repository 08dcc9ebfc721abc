import { decodeBytes } from "../platform/jws/segment.ts";

/** The prime and the constant of the curve P-256, y² = x³ − 3x + b (FIPS 186-5). */
const P = 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n;
const B = 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn;
const COORDINATE_BYTES = 32;

/** Returns whether the coordinates of a JWK are a point on the curve (RFC 7518 section 6.2.1). Not every WebCrypto checks that. */
export function isPoint(xText: unknown, yText: unknown): boolean {
  const [x, y] = [readCoordinate(xText), readCoordinate(yText)];
  return x !== undefined && y !== undefined && (y * y - x * x * x + 3n * x - B) % P === 0n;
}

function readCoordinate(text: unknown): bigint | undefined {
  const bytes = typeof text === "string" ? decodeBytes(text) : undefined;
  if (bytes?.length !== COORDINATE_BYTES) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  let value = 0n;
  for (let at = 0; at < COORDINATE_BYTES; at += 8) value = (value << 64n) | view.getBigUint64(at);
  return value < P ? value : undefined;
}
