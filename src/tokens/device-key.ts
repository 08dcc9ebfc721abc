import { createPublicKey, hash, type KeyObject } from "node:crypto";
import type { DeviceKey } from "../session/device-ports.ts";

/** A device key, and the key object that verifies with it. */
export type ReadyDeviceKey = { readonly key: DeviceKey; readonly object: KeyObject };

const COORDINATE_LENGTH = 32;
const POINT_LENGTH = 2 * COORDINATE_LENGTH;
const RSA_BITS = { min: 2048, max: 4096 } as const;
/** Smaller exponents help forgers if verifiers are lax; larger ones only cost time (FIPS 186-5 A.1.1 starts at 65537). */
const RSA_EXPONENT = { min: 65_537n, max: 0xffff_ffffn } as const;

/** Members of private and symmetric keys (RFC 7518 §6). A client that sends one does not keep it secret. */
const PRIVATE_MEMBERS = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"] as const;

type Jwk = Readonly<Record<string, unknown>>;

/**
 * Imports a public JWK (RFC 7517) for an algorithm. Undefined unless it is P-256 with a point on the curve, or RSA with 2,048 to 4,096
 * bits, in canonical encoding and without a private member.
 */
export function keyFromJwk(algorithm: DeviceKey["algorithm"], value: unknown): ReadyDeviceKey | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
  const jwk = value as Jwk;
  if (PRIVATE_MEMBERS.some((name) => Object.hasOwn(jwk, name))) return undefined;
  if (jwk.alg !== undefined && jwk.alg !== algorithm) return undefined;
  if (algorithm === "ES256") return jwk.kty === "EC" && jwk.crv === "P-256" ? ecKey(jwk.x, jwk.y) : undefined;
  return jwk.kty === "RSA" ? rsaKey(jwk.n, jwk.e) : undefined;
}

/** Returns the key that a session has stored; undefined if the bytes are not a key. */
export function keyFromBytes(bytes: Uint8Array): ReadyDeviceKey | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length === POINT_LENGTH) {
    return ecKey(
      buffer.toString("base64url", 0, COORDINATE_LENGTH),
      buffer.toString("base64url", COORDINATE_LENGTH, POINT_LENGTH),
    );
  }
  try {
    const { n, e } = createPublicKey({ key: buffer, format: "der", type: "spki" }).export({ format: "jwk" });
    const ready = rsaKey(n, e);
    return ready !== undefined && buffer.equals(ready.key.bytes) ? ready : undefined;
  } catch {
    return undefined;
  }
}

function ecKey(x: unknown, y: unknown): ReadyDeviceKey | undefined {
  const point = [decode(x), decode(y)];
  if (!point.every((part) => part?.length === COORDINATE_LENGTH)) return undefined;
  const object = importJwk({ kty: "EC", crv: "P-256", x: x as string, y: y as string });
  if (object === undefined) return undefined;
  const bytes = Uint8Array.from(Buffer.concat(point as Buffer[]));
  const thumbprint = sha256(`{"crv":"P-256","kty":"EC","x":"${x}","y":"${y}"}`);
  return { key: { algorithm: "ES256", bytes, thumbprint }, object };
}

function rsaKey(n: unknown, e: unknown): ReadyDeviceKey | undefined {
  const [modulus, exponent] = [decode(n), decode(e)];
  // A Base64urlUInt (RFC 7518 §2) has no leading zero.
  if (modulus === undefined || exponent === undefined || !modulus[0] || !exponent[0]) return undefined;
  if (modulus.length < RSA_BITS.min / 8 || modulus.length > RSA_BITS.max / 8 || exponent.length > 4) return undefined;
  const object = importJwk({ kty: "RSA", n: n as string, e: e as string });
  const { modulusLength = 0, publicExponent = 0n } = object?.asymmetricKeyDetails ?? {};
  const sound =
    modulusLength >= RSA_BITS.min &&
    modulusLength <= RSA_BITS.max &&
    (modulus.at(-1) ?? 0) % 2 === 1 &&
    publicExponent >= RSA_EXPONENT.min &&
    publicExponent <= RSA_EXPONENT.max &&
    publicExponent % 2n === 1n;
  if (object === undefined || !sound) return undefined;
  const bytes = Uint8Array.from(object.export({ format: "der", type: "spki" }));
  const thumbprint = sha256(`{"e":"${e}","kty":"RSA","n":"${n}"}`);
  return { key: { algorithm: "RS256", bytes, thumbprint }, object };
}

function importJwk(key: Record<string, string>): KeyObject | undefined {
  try {
    return createPublicKey({ key, format: "jwk" });
  } catch {
    return undefined; // the point is not on the curve, or this is not a key at all
  }
}

/** Decodes canonical base64url; undefined for any other text. */
function decode(text: unknown): Buffer | undefined {
  if (typeof text !== "string") return undefined;
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? bytes : undefined;
}

function sha256(text: string): Uint8Array {
  return Uint8Array.from(hash("sha256", text, "buffer"));
}
