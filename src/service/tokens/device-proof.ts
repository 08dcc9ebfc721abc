import { createPublicKey, hash, type KeyObject } from "node:crypto";
import { readProofKey, thumbprintInput } from "../../platform/dpop/proof-key.ts";
import { importPublicKey, isSignedBy } from "../../platform/dpop/verify-proof.ts";
import { readCompactJws, readHeader, readPayload } from "../../platform/jws/compact-jws.ts";
import { findKeyFault } from "../../platform/jws/public-key.ts";
import type { DeviceKey } from "../session/devices/key.ts";
import type { DeviceProofExpectation, DeviceProofRefusal, DeviceProofResult } from "../session/devices/ports.ts";

/** The type of a proof (DBSC, "DBSC Proof JWT Syntax"). */
const TYP = "dbsc+jwt";

/** A longer text is not a proof: even with an RSA key of 4,096 bits and a long URL, a proof is shorter than 3,000 characters. */
const MAX_LENGTH = 4096;

/** Matches a structured-field string (RFC 9651). Some browsers send the proof as such a string, others without quotes. */
const QUOTED = /^"([^"]*)"$/;

/** Verifies a compact JWS under ES256 or RS256, bare or as a quoted string. The caller must check the challenge in it. */
export function verifyDeviceProof(jwt: string, expected: DeviceProofExpectation): DeviceProofResult {
  const jws = readCompactJws(QUOTED.exec(jwt)?.[1] ?? jwt, MAX_LENGTH);
  const header = jws && readHeader(jws);
  if (jws === undefined || header === undefined) return refuse("malformed");
  const found = findKey(header, expected);
  if (!found.ok) return found;
  const { key, object } = found.ready;
  if (!isSignedBy(object, key.algorithm, jws)) return refuse("forged");
  // Unknown claims are ignored (RFC 7519 §4). Browsers send no reliable time, so only the time in the challenge is checked.
  const { jti } = readPayload(jws) ?? {};
  return typeof jti === "string" ? { ok: true, key, challenge: jti } : refuse("malformed");
}

type FoundKey =
  | { readonly ok: true; readonly ready: ReadyDeviceKey }
  | { readonly ok: false; readonly reason: DeviceProofRefusal };

function findKey(header: Readonly<Record<string, unknown>>, expected: DeviceProofExpectation): FoundKey {
  if (header.typ !== TYP) return refuse("wrong_type");
  const algorithm = header.alg;
  if (algorithm !== "ES256" && algorithm !== "RS256") return refuse("wrong_algorithm");
  if (expected.kind === "registration") {
    const ready = keyFromJwk(algorithm, header.jwk);
    return ready === undefined ? refuse("bad_key") : { ok: true, ready };
  }
  if (algorithm !== expected.key.algorithm) return refuse("wrong_algorithm");
  const ready = keyFromBytes(expected.key.bytes);
  if (ready === undefined) throw new TypeError("the session's device key cannot be imported");
  // Drafts of the protocol sent the key with every proof. That is harmless if it is the session's key.
  const sent = header.jwk === undefined ? ready : keyFromJwk(algorithm, header.jwk);
  return sent !== undefined && ready.object.equals(sent.object) ? { ok: true, ready } : refuse("other_key");
}

const refuse = (reason: DeviceProofRefusal) => ({ ok: false, reason }) as const;

/** A device key, and the key object that verifies its signatures. */
type ReadyDeviceKey = { readonly key: DeviceKey; readonly object: KeyObject };

const COORDINATE_LENGTH = 32;
const POINT_LENGTH = 2 * COORDINATE_LENGTH;

/**
 * Imports a public JWK (RFC 7517) for an algorithm. Returns undefined unless it is a P-256 key with a point on the curve, or an RSA key
 * of 2,048 to 4,096 bits, in canonical encoding and without private members.
 */
function keyFromJwk(algorithm: DeviceKey["algorithm"], value: unknown): ReadyDeviceKey | undefined {
  const key = readProofKey(algorithm, value);
  const object = key && findKeyFault(key.members) === undefined ? importPublicKey(key.members) : undefined;
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
