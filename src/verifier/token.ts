import type { Algorithm, Key } from "./key.ts";
import { type KeySet, rememberHeader } from "./key-set.ts";
import { decodeText, parseObject } from "./strict-json.ts";
import type { Claims, Refusal } from "./verdict.ts";

/** Longer texts are no access tokens of ours. */
const MAX_LENGTH = 16_384;

/** Every algorithm of ours signs in 64 bytes: 86 characters. */
const SIGNATURE_BYTES = 64;
const SIGNATURE_LENGTH = 86;

/** The media type of access tokens, with or without its prefix, in any case (RFC 9068 §4, RFC 7515 §4.1.9). */
const TYPE = /^(application\/)?at\+jwt$/i;

/** `kid` is all that a header may choose; a member that could change what is checked is not ours (RFC 8725 §3.10). */
const HEADER_MEMBERS = new Set(["typ", "alg", "kid"]);

/** What is signed, and the signature: scratch buffers, since one token is checked at a time. */
const input = Buffer.alloc(MAX_LENGTH);
const signed = Buffer.alloc(SIGNATURE_BYTES);

export type Checked = { readonly claims: Claims; readonly key: Key };

export type Expectations = {
  readonly issuer: string;
  readonly audiences: ReadonlySet<string>;
  /** ms since the epoch. No leeway: a token that is late by a second is renewed, one accepted late may be revoked. */
  readonly clock: () => number;
};

/** All that can be said of a token without asking anybody. `unknown_key` may become another answer with newer keys. */
export function checkToken(token: string, keys: KeySet, expected: Expectations): Checked | Refusal {
  const end = token.length - SIGNATURE_LENGTH - 1;
  const dot = token.indexOf(".");
  if (token.length > MAX_LENGTH || dot < 1 || dot >= end || token[end] !== ".") return "malformed";
  const payload = decodeText(token.slice(dot + 1, end));
  if (payload === undefined || !readSignature(token.slice(end + 1))) return "malformed";

  const header = token.slice(0, dot);
  const known = keys.headers.get(header);
  const key = known ?? keyOf(header, keys);
  if (typeof key === "string") return key;
  input.write(token, 0, end, "latin1"); // all of it is ASCII: the segments are base64url
  if (!key.check(input.subarray(0, end), signed)) return "forged";
  if (known === undefined) rememberHeader(keys, header, key);

  const claims = parseObject(payload);
  if (claims === undefined) return "malformed";
  return claimsFault(claims, expected) ?? { claims: claims as Claims, key };
}

/** Decodes into `signed`; whether it was spelled in the one way that there is. */
function readSignature(segment: string): boolean {
  return signed.write(segment, "base64url") === SIGNATURE_BYTES && signed.toString("base64url") === segment;
}

function keyOf(segment: string, keys: KeySet): Key | Refusal {
  const text = decodeText(segment);
  const header = text === undefined ? undefined : parseObject(text);
  if (header === undefined || !Object.keys(header).every((name) => HEADER_MEMBERS.has(name))) return "malformed";
  const { typ, alg, kid } = header;
  if (typeof kid !== "string") return "malformed";
  if (typeof typ !== "string" || !TYPE.test(typ)) return "wrong_type";
  if (alg !== ("ES256" satisfies Algorithm) && alg !== ("EdDSA" satisfies Algorithm)) return "wrong_algorithm";
  if (keys.isRevoked(kid)) return "revoked_key";
  const key = keys.find(kid);
  if (key === undefined) return "unknown_key";
  return key.alg === alg ? key : "wrong_algorithm"; // the key decides; the header may only agree (RFC 8725 §3.1)
}

/** RFC 9068 §4, in its order; what it makes REQUIRED in §2.2 must be there. */
function claimsFault(claims: Readonly<Record<string, unknown>>, expected: Expectations): Refusal | undefined {
  const { iss, aud, exp, nbf, iat, sub, jti, sid, client_id, cnf } = claims;
  if (![sub, jti, sid, client_id].every((claim) => typeof claim === "string" && claim !== "")) return "malformed";
  if (!isTime(exp) || !isTime(iat)) return "malformed";
  if (iss !== expected.issuer) return "wrong_issuer";
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (!audiences.every((each) => typeof each === "string")) return "malformed";
  if (!audiences.some((each) => expected.audiences.has(each))) return "wrong_audience";
  // Bound to a key (RFC 7800) that nobody has proven to hold: whoever presents it as a bearer token may have stolen it.
  if (cnf !== undefined) return "not_bearer";
  const now = expected.clock();
  if (nbf !== undefined && !(isTime(nbf) && now >= nbf * 1000)) return "not_yet_valid";
  if (now >= exp * 1000) return "expired"; // on or after (RFC 7519 §4.1.4)
  return exp < iat ? "malformed" : undefined;
}

/** Seconds since the epoch. JSON can spell numbers that are none, such as 1e999. */
function isTime(value: unknown): value is number {
  return Number.isFinite(value);
}
