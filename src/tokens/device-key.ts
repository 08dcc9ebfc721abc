import { createPublicKey, hash, type KeyObject } from "node:crypto";
import type { DeviceKey } from "../session/device-ports.ts";
import { readProofKey, thumbprintInput } from "../verifier/dpop/proof-key.ts";
import { importPublicKey } from "../verifier/dpop/verify-proof.ts";

/** A device key, and the key object that verifies its signatures. */
export type ReadyDeviceKey = { readonly key: DeviceKey; readonly object: KeyObject };

const COORDINATE_LENGTH = 32;
const POINT_LENGTH = 2 * COORDINATE_LENGTH;

/**
 * Imports a public JWK (RFC 7517) for an algorithm. Returns undefined unless it is a P-256 key with a point on the curve, or an RSA key
 * of 2,048 to 4,096 bits, in canonical encoding and without private members.
 */
export function keyFromJwk(algorithm: DeviceKey["algorithm"], value: unknown): ReadyDeviceKey | undefined {
  const key = readProofKey(algorithm, value);
  const object = key && importPublicKey(key.members);
  if (key === undefined || object === undefined) return undefined;
  const thumbprint = Uint8Array.from(hash("sha256", thumbprintInput(key), "buffer"));
  return { key: { algorithm, bytes: bytesOf(algorithm, object), thumbprint }, object };
}

/** Returns the key that a session has stored; undefined if the bytes are not a key. */
export function keyFromBytes(bytes: Uint8Array): ReadyDeviceKey | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length === POINT_LENGTH) {
    const x = buffer.toString("base64url", 0, COORDINATE_LENGTH);
    const y = buffer.toString("base64url", COORDINATE_LENGTH, POINT_LENGTH);
    return keyFromJwk("ES256", { kty: "EC", crv: "P-256", x, y });
  }
  try {
    const { n, e } = createPublicKey({ key: buffer, format: "der", type: "spki" }).export({ format: "jwk" });
    const ready = keyFromJwk("RS256", { kty: "RSA", n, e });
    return ready !== undefined && buffer.equals(ready.key.bytes) ? ready : undefined;
  } catch {
    return undefined;
  }
}

function bytesOf(algorithm: DeviceKey["algorithm"], object: KeyObject): Uint8Array {
  if (algorithm === "RS256") return Uint8Array.from(object.export({ format: "der", type: "spki" }));
  const { x = "", y = "" } = object.export({ format: "jwk" });
  return Uint8Array.from(Buffer.concat([Buffer.from(x, "base64url"), Buffer.from(y, "base64url")]));
}
