import type { Algorithm, Key } from "./key.ts";
import type { KeySet } from "./key-set.ts";
import { decodeText, parseObject } from "./strict-json.ts";
import { type Claims, REFUSED, type Refusal } from "./verdict.ts";

/** A longer text is not an access token of the service. */
const MAX_LENGTH = 16_384;

/** All accepted algorithms have signatures of 64 bytes, which are 86 characters. */
const SIGNATURE_BYTES = 64;
const SIGNATURE_LENGTH = 86;

/** Matches the media type of access tokens, with or without its prefix, in any case (RFC 9068 section 4, RFC 7515 section 4.1.9). */
const TYPE = /^(application\/)?at\+jwt$/i;

/**
 * The header members that are accepted. The header only chooses the key; a member that could change the verification is rejected (RFC
 * 8725 section 3.10).
 */
const HEADER_MEMBERS = new Set(["typ", "alg", "kid"]);

/** Scratch buffers for the signing input and the signature: one token is checked at a time. */
const input = Buffer.alloc(MAX_LENGTH);
const signature = Buffer.alloc(SIGNATURE_BYTES);

type Refused = { readonly ok: false; readonly reason: Refusal };

export type Checked = { readonly ok: true; readonly claims: Claims; readonly key: Key };

type Expectations = {
  readonly issuer: string;
  readonly audiences: ReadonlySet<string>;
  /** Whether the claim `device_bound` is required. */
  readonly requireDeviceBound?: boolean;
  /**
   * The wall clock, in ms since the epoch. There is no leeway: a token that is rejected a second early is refreshed, but one that is
   * accepted late may be revoked.
   */
  readonly clock: () => number;
};

/** Checks a token with the keys and the clock alone. The result `unknown_key` may change with newer keys. */
export function checkToken(token: string, keys: KeySet, expected: Expectations): Checked | Refused {
  const end = token.length - SIGNATURE_LENGTH - 1;
  const dot = token.indexOf(".");
  if (token.length > MAX_LENGTH || dot < 1 || dot >= end || token[end] !== ".") return refuse("malformed");
  const payload = decodeText(token.slice(dot + 1, end));
  if (payload === undefined || !readSignature(token.slice(end + 1))) return refuse("malformed");

  const header = token.slice(0, dot);
  const known = keys.headers.get(header);
  const found = known === undefined ? findKey(header, keys) : undefined;
  if (found?.ok === false) return found;
  const key = known ?? (found as { readonly key: Key }).key;
  const isAuthentic = keys.signatures.isValid(token, key, () => {
    input.write(token, 0, end, "latin1"); // the text is ASCII, because the segments are base64url
    return key.verifies(input.subarray(0, end), signature);
  });
  if (!isAuthentic) return refuse("forged");
  if (known === undefined) keys.rememberHeader(header, key);

  const claims = parseObject(payload);
  if (claims === undefined) return refuse("malformed");
  const fault = findFault(claims, expected);
  return fault === undefined ? { ok: true, claims: claims as Claims, key } : refuse(fault);
}

function refuse(reason: Refusal): Refused {
  return REFUSED[reason] as Refused;
}

/** Decodes a segment into `signature`. Returns whether it is canonical base64url of the right length. */
function readSignature(segment: string): boolean {
  return signature.write(segment, "base64url") === SIGNATURE_BYTES && signature.toString("base64url") === segment;
}

function findKey(segment: string, keys: KeySet): { readonly ok: true; readonly key: Key } | Refused {
  const text = decodeText(segment);
  const header = text === undefined ? undefined : parseObject(text);
  if (header === undefined || !Object.keys(header).every((name) => HEADER_MEMBERS.has(name)))
    return refuse("malformed");
  const { typ, alg, kid } = header;
  if (typeof kid !== "string") return refuse("malformed");
  if (typeof typ !== "string" || !TYPE.test(typ)) return refuse("wrong_type");
  if (alg !== ("ES256" satisfies Algorithm) && alg !== ("EdDSA" satisfies Algorithm)) return refuse("wrong_algorithm");
  if (keys.isRevoked(kid)) return refuse("revoked_key");
  const key = keys.find(kid);
  if (key === undefined) return refuse("unknown_key");
  // The key decides the algorithm; the header must name the same one (RFC 8725 section 3.1).
  return key.alg === alg ? { ok: true, key } : refuse("wrong_algorithm");
}

/** Validates the claims as RFC 9068 section 4 does, in its order; those that section 2.2 requires must be present. */
function findFault(claims: Readonly<Record<string, unknown>>, expected: Expectations): Refusal | undefined {
  const { iss, aud, exp, nbf, iat, sub, jti, sid, client_id, cnf } = claims;
  if (![sub, jti, sid, client_id].every((claim) => typeof claim === "string" && claim !== "")) return "malformed";
  if (!isTime(exp) || !isTime(iat)) return "malformed";
  if (iss !== expected.issuer) return "wrong_issuer";
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!audiences.every((each) => typeof each === "string")) return "malformed";
  if (!audiences.some((each) => expected.audiences.has(each))) return "wrong_audience";
  // The token is bound to a key (RFC 7800) whose possession was not proven. As a bearer token it may be stolen.
  if (cnf !== undefined) return "not_bearer";
  const nowMs = expected.clock();
  if (nbf !== undefined && !(isTime(nbf) && nowMs >= nbf * 1000)) return "not_yet_valid";
  if (nowMs >= exp * 1000) return "expired"; // a token is expired on or after this time (RFC 7519 section 4.1.4)
  if (exp < iat) return "malformed";
  return expected.requireDeviceBound && claims.device_bound !== true ? "not_device_bound" : undefined;
}

/** Checks a time in seconds since the epoch. A JSON number may also be infinite, such as 1e999. */
function isTime(value: unknown): value is number {
  return Number.isFinite(value);
}
