import type {
  DeviceKey,
  DeviceProofExpectation,
  DeviceProofRefusal,
  DeviceProofResult,
} from "../session/device-ports.ts";
import { decodeText } from "../verifier/segment.ts";
import { parseObject } from "../verifier/strict-json.ts";
import { keyFromBytes, keyFromJwk, type ReadyDeviceKey } from "./device-key.ts";
import { createSignatureCheck } from "./jws.ts";

/** The type of a proof (DBSC, "DBSC Proof JWT Syntax"). */
const TYP = "dbsc+jwt";

/** A longer text is not a proof: with an RSA key of 4,096 bits and a long URL a proof has less than 3,000 characters. */
const MAX_LENGTH = 4096;

/** Matches a structured-field string or a bare token (RFC 9651): browsers have sent both. */
const SEGMENTS = /^(")?([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\1$/;

/** Header members that would change what is signed or how it is read (RFC 7515 §4.1.11, RFC 7797). */
const REFUSED_MEMBERS = ["crit", "b64"] as const;

/**
 * Verifies a proof of possession: a compact JWS under ES256 or RS256. The caller must check the challenge in it.
 *
 * @param jwt the value of the header, bare or as a quoted string
 */
export function verifyDeviceProof(jwt: string, expected: DeviceProofExpectation): DeviceProofResult {
  const segments = jwt.length > MAX_LENGTH ? null : SEGMENTS.exec(jwt);
  if (segments === null) return refuse("malformed");
  const [, , header = "", payload = "", signature = ""] = segments;
  const found = readHeader(header, expected);
  if (!found.ok) return found;
  const { key, object } = found.ready;
  if (!isCanonical(signature)) return refuse("malformed");
  if (!createSignatureCheck(key.algorithm, object)(`${header}.${payload}`, signature)) return refuse("forged");
  return readPayload(payload, key);
}

type HeaderResult =
  | { readonly ok: true; readonly ready: ReadyDeviceKey }
  | { readonly ok: false; readonly reason: DeviceProofRefusal };

function readHeader(segment: string, expected: DeviceProofExpectation): HeaderResult {
  const header = parseSegment(segment);
  if (header === undefined || REFUSED_MEMBERS.some((name) => Object.hasOwn(header, name))) return refuse("malformed");
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
  if (header.jwk !== undefined && !isSame(ready, keyFromJwk(algorithm, header.jwk))) return refuse("other_key");
  return { ok: true, ready };
}

function isSame(one: ReadyDeviceKey, other: ReadyDeviceKey | undefined): boolean {
  return other !== undefined && one.object.equals(other.object);
}

/** Unknown claims are ignored (RFC 7519 §4). Browsers send no reliable time, so only the time of the challenge counts. */
function readPayload(segment: string, key: DeviceKey): DeviceProofResult {
  const { jti } = parseSegment(segment) ?? {};
  return typeof jti === "string" ? { ok: true, key, challenge: jti } : refuse("malformed");
}

function parseSegment(segment: string): Readonly<Record<string, unknown>> | undefined {
  const text = decodeText(segment);
  return text === undefined ? undefined : parseObject(text);
}

function isCanonical(segment: string): boolean {
  return Buffer.from(segment, "base64url").toString("base64url") === segment;
}

function refuse<Reason extends DeviceProofRefusal>(reason: Reason): { readonly ok: false; readonly reason: Reason } {
  return { ok: false, reason };
}
