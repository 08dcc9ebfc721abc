/** The requirements on a token, apart from its signature (RFC 9068, RFC 8725). They are the same in every runtime. */
import { type CompactJws, readCompactJws, readHeader } from "../platform/jws/compact-jws.ts";
import { isSignature } from "../platform/jws/public-key.ts";
import { parseObject } from "../platform/jws/strict-json.ts";
import { isAlgorithm, type PublishedKey } from "./keys/jwk.ts";
import type { KeySet } from "./keys/key-set.ts";
import { type Claims, REFUSAL_VERDICTS, type Refusal, type RefusalVerdict } from "./verdict.ts";

/** The greatest length of a token, in characters. No access token of the service is longer. */
export const MAX_LENGTH = 16_384;

/** Matches the media type of access tokens, in any case, with or without `application/` (RFC 9068 section 4, RFC 7515 section 4.1.9). */
const TYPE = /^(application\/)?at\+jwt$/i;

/** The accepted header members, which choose the key. Other members could change the verification (RFC 8725 section 3.10). */
const HEADER_MEMBERS = new Set(["typ", "alg", "kid"]);

/** The claims that every access token has, beside `iss` and `aud` (RFC 9068 section 2.2). `sid` is a claim of this service. */
export const REQUIRED_CLAIMS = ["client_id", "exp", "iat", "jti", "sid", "sub"] as const;

/** The greatest version that the feed can express (uint32). */
const MAX_VERSION = 2 ** 32 - 1;

export type Checked = { readonly ok: true; readonly claims: Claims; readonly key: PublishedKey };

export type Expectations = {
  readonly issuer: string;
  readonly audiences: ReadonlySet<string>;
  /** Whether the claim `device_bound` is required. */
  readonly requireDeviceBound?: boolean;
  /** Whether the token may be bound to a key. The caller then checks the proof of the key. */
  readonly allowsBound?: boolean;
  /**
   * The wall clock, in ms since the epoch. There is no leeway for clock skew: a token that is rejected early is only refreshed by its
   * client, but a token that is accepted late may be revoked.
   */
  readonly clock: () => number;
};

/** Returns the parts of a token; undefined if the text cannot be one. */
export function readToken(token: string): CompactJws | undefined {
  const jws = readCompactJws(token, MAX_LENGTH);
  return jws && isSignature(jws.signature) ? jws : undefined;
}

export function refuse(reason: Refusal): RefusalVerdict {
  return REFUSAL_VERDICTS[reason];
}

/** Finds the key that the header of a token names. */
export function findKey<Key extends PublishedKey>(
  jws: CompactJws,
  keys: Pick<KeySet<Key>, "find" | "isRevoked">,
): { readonly ok: true; readonly key: Key } | RefusalVerdict {
  const header = readHeader(jws);
  if (header === undefined || !Object.keys(header).every((name) => HEADER_MEMBERS.has(name)))
    return refuse("malformed");
  const { typ, alg, kid } = header;
  if (typeof kid !== "string") return refuse("malformed");
  if (typeof typ !== "string" || !TYPE.test(typ)) return refuse("wrong_type");
  if (!isAlgorithm(alg)) return refuse("wrong_algorithm");
  if (keys.isRevoked(kid)) return refuse("revoked_key");
  const key = keys.find(kid);
  if (key === undefined) return refuse("unknown_key");
  // The key decides the algorithm; the header must name the same one (RFC 8725 section 3.1).
  return key.alg === alg ? { ok: true, key } : refuse("wrong_algorithm");
}

/** Returns the claims of a payload with a valid signature, or why they are not accepted. */
export function checkClaims(payload: string, key: PublishedKey, expected: Expectations): Checked | RefusalVerdict {
  const claims = parseObject(payload);
  if (claims === undefined) return refuse("malformed");
  const fault = findFault(claims, expected);
  return fault === undefined ? { ok: true, claims: claims as Claims, key } : refuse(fault);
}

/** Validates the claims in the order of RFC 9068 section 4. The claims that section 2.2 requires must be present. */
function findFault(claims: Readonly<Record<string, unknown>>, expected: Expectations): Refusal | undefined {
  const { iss, aud, exp, nbf, iat, sub, jti, sid, client_id, cnf, sv, act } = claims;
  if (![sub, jti, sid, client_id].every((claim) => typeof claim === "string" && claim !== "")) return "malformed";
  if (!isTime(exp) || !isTime(iat)) return "malformed";
  if (iss !== expected.issuer) return "wrong_issuer";
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!audiences.every((each) => typeof each === "string")) return "malformed";
  if (!audiences.some((each) => expected.audiences.has(each))) return "wrong_audience";
  // The token is bound to a key (RFC 7800), and possession of the key was not proven, so the token may be stolen.
  if (cnf !== undefined && expected.allowsBound !== true) return "not_bearer";
  const nowMs = expected.clock();
  if (nbf !== undefined && !(isTime(nbf) && nowMs >= nbf * 1000)) return "not_yet_valid";
  if (nowMs >= exp * 1000) return "expired"; // A token is expired on or after the time in `exp` (RFC 7519 section 4.1.4).
  if (exp < iat || !isVersion(sv) || !isActor(act)) return "malformed";
  return expected.requireDeviceBound && claims.device_bound !== true ? "not_device_bound" : undefined;
}

/** Checks the version of what the session says. A token from before its first change has none. */
function isVersion(value: unknown): boolean {
  return value === undefined || (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= MAX_VERSION);
}

/** Checks who acts for the subject (RFC 8693 section 4.1). An application that reads `act.sub` relies on its form. */
function isActor(value: unknown): boolean {
  if (value === undefined) return true;
  const { sub, act } = (value ?? {}) as { readonly sub?: unknown; readonly act?: unknown };
  return typeof sub === "string" && sub !== "" && isActor(act);
}

/** Checks a time in seconds since the epoch. A JSON number may also be infinite, such as 1e999. */
function isTime(value: unknown): value is number {
  return Number.isFinite(value);
}
