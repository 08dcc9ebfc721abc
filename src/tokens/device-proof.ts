import type { DeviceProofExpectation, DeviceProofRefusal, DeviceProofResult } from "../session/device-ports.ts";
import { readCompactJws } from "../verifier/dpop/compact-jws.ts";
import { isSignedBy } from "../verifier/dpop/verify-proof.ts";
import { keyFromBytes, keyFromJwk, type ReadyDeviceKey } from "./device-key.ts";

/** The type of a proof (DBSC, "DBSC Proof JWT Syntax"). */
const TYP = "dbsc+jwt";

/** A longer text is not a proof: even with an RSA key of 4,096 bits and a long URL, a proof is shorter than 3,000 characters. */
const MAX_LENGTH = 4096;

/** Matches a structured-field string (RFC 9651). Some browsers send the proof as such a string, others without quotes. */
const QUOTED = /^"([^"]*)"$/;

/**
 * Verifies a proof of possession: a compact JWS under ES256 or RS256. The caller must check the challenge in it.
 *
 * @param jwt the value of the header, bare or as a quoted string
 */
export function verifyDeviceProof(jwt: string, expected: DeviceProofExpectation): DeviceProofResult {
  const jws = readCompactJws(QUOTED.exec(jwt)?.[1] ?? jwt, MAX_LENGTH);
  const header = jws?.readHeader();
  if (jws === undefined || header === undefined) return refuse("malformed");
  const found = readHeader(header, expected);
  if (!found.ok) return found;
  const { key, object } = found.ready;
  if (!isSignedBy(object, key.algorithm, jws)) return refuse("forged");
  // Unknown claims are ignored (RFC 7519 §4). Browsers send no reliable time, so only the time in the challenge is checked.
  const { jti } = jws.readPayload() ?? {};
  return typeof jti === "string" ? { ok: true, key, challenge: jti } : refuse("malformed");
}

type HeaderResult =
  | { readonly ok: true; readonly ready: ReadyDeviceKey }
  | { readonly ok: false; readonly reason: DeviceProofRefusal };

function readHeader(header: Readonly<Record<string, unknown>>, expected: DeviceProofExpectation): HeaderResult {
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
