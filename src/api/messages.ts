/** Message ↔ domain: what both services say of a session, and the rules that requests keep. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type Duration, type Timestamp, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { invalidRequest } from "../session/errors.ts";
import {
  type Audience,
  type Authentication,
  authenticationClaims,
  parseSessionId,
  RESERVED_CLAIMS,
  type Session,
  type SessionId,
} from "../session/model.ts";

const DEFAULT_PAGE_SIZE = 20;
const MAX_PAGE_SIZE = 100;
const MAX_AUDIENCES = 8;
const MAX_METHODS = 8;

/** Bytes of the claims' JSON. */
export const MAX_CLAIMS = 4096;

/** What every picture of a session shows. */
export function timesOf(session: Session): {
  createTime: Timestamp;
  lastRefreshTime: Timestamp;
  idleExpireTime: Timestamp;
  absoluteExpireTime: Timestamp;
} {
  return {
    createTime: timestampFromMs(session.createdAt),
    lastRefreshTime: timestampFromMs(session.lastRefreshedAt),
    idleExpireTime: timestampFromMs(session.idleExpiresAt),
    absoluteExpireTime: timestampFromMs(session.absoluteExpiresAt),
  };
}

export function sessionIdOf(field: string, text: string): SessionId {
  if (text === "") throw invalidRequest(field, "is required");
  const sid = parseSessionId(text);
  if (sid === undefined) throw invalidRequest(field, "is not a session id");
  return sid;
}

export function subjectOf(text: string): string {
  if (text === "") throw invalidRequest("subject", "is required");
  return textOf("subject", text, 255);
}

/** A text of at most `max` UTF-8 bytes, without control characters. */
export function textOf(field: string, text: string, max: number): string {
  if (Buffer.byteLength(text) > max) throw invalidRequest(field, `is longer than ${max} bytes`);
  if (/\p{Cc}/u.test(text)) throw invalidRequest(field, "has control characters");
  return text;
}

/** @param byDefault for a request that names none */
export function audienceOf(one: string, several: readonly string[], byDefault: string): Audience {
  if (one !== "" && several.length > 0) throw invalidRequest("audiences", "may not be set beside audience");
  if (several.length > MAX_AUDIENCES) throw invalidRequest("audiences", `has more than ${MAX_AUDIENCES} items`);
  if (new Set(several).size < several.length) throw invalidRequest("audiences", "has an item twice");
  for (const item of several) {
    if (textOf("audiences", item, 255) === "") throw invalidRequest("audiences", "has an empty item");
  }
  const [first, ...others] = several;
  if (first === undefined) return textOf("audience", one, 255) || byDefault;
  return others.length === 0 ? first : [first, ...others];
}

/** How far a caller's clock may be ahead of ours, ms. */
const CLOCK_SKEW = 60_000;

type AuthenticationFields = {
  readonly authTime?: Timestamp | undefined;
  readonly amr: readonly string[];
  readonly acr: string;
};

/** What a request says of an authentication; undefined when it says nothing. @param now ms since the epoch */
export function authenticationOf(
  { authTime, amr, acr }: AuthenticationFields,
  now: number,
): Authentication | undefined {
  if (amr.length > MAX_METHODS) throw invalidRequest("amr", `has more than ${MAX_METHODS} items`);
  for (const method of amr) {
    if (textOf("amr", method, 32) === "") throw invalidRequest("amr", "has an empty item");
  }
  const contextClass = textOf("acr", acr, 255);
  const time = authTime === undefined ? 0 : timestampMs(authTime);
  if (authTime !== undefined && time < 1000) throw invalidRequest("auth_time", "is not after 1970-01-01T00:00:00Z");
  if (time > now + CLOCK_SKEW) throw invalidRequest("auth_time", "is in the future");
  if (time === 0 && amr.length === 0 && contextClass === "") return undefined;
  return { time: time - (time % 1000), methods: [...amr], contextClass };
}

/** Refuses claims that the fields of an authentication would overrule. */
export function notTwice(claims: JsonObject | undefined, authentication: Authentication | undefined): void {
  if (claims === undefined || authentication === undefined) return;
  for (const name of Object.keys(authenticationClaims(authentication))) {
    if (Object.hasOwn(claims, name)) throw invalidRequest(`claims.${name}`, `is set beside ${name}`);
  }
}

/** ms since the epoch, a fraction rounded up: a session created within it was created before. */
export function timeAfter({ seconds, nanos }: Timestamp): number {
  return Number(seconds) * 1000 + Math.ceil(nanos / 1e6);
}

export function pageSizeOf(size: number): number {
  if (size < 0 || size > MAX_PAGE_SIZE) throw invalidRequest("page_size", `must be between 0 and ${MAX_PAGE_SIZE}`);
  return size === 0 ? DEFAULT_PAGE_SIZE : size;
}

/** Milliseconds of an optional duration: from a second to `max`. */
export function durationOf(field: string, duration: Duration | undefined, max: number): number {
  if (duration === undefined) return max;
  const ms = Number(duration.seconds) * 1000 + Math.trunc(duration.nanos / 1e6);
  if (!(ms >= 1000 && ms <= max)) throw invalidRequest(field, `must be between 1s and ${max / 1000}s`);
  return ms;
}

/** The claims of a request as JSON text. */
export function claimsOf(claims: JsonObject | undefined): string {
  if (claims === undefined) return "{}";
  for (const name of RESERVED_CLAIMS) {
    if (Object.hasOwn(claims, name)) throw invalidRequest(`claims.${name}`, "is a reserved claim");
  }
  const fault = faultOfJson(claims);
  if (fault !== undefined) throw invalidRequest("claims", fault);
  const text = JSON.stringify(claims);
  if (Buffer.byteLength(text) > MAX_CLAIMS)
    throw invalidRequest("claims", `is longer than ${MAX_CLAIMS} bytes as JSON`);
  return text;
}

/**
 * Why a value cannot be written as JSON and read again as the same: JavaScript makes Infinity of `1e400`, which becomes null,
 * and keeps half of a surrogate pair, which UTF-8 cannot hold.
 */
function faultOfJson(value: JsonValue): string | undefined {
  if (typeof value === "number") return Number.isFinite(value) ? undefined : "has a number that is out of range";
  if (typeof value === "string") return value.isWellFormed() ? undefined : "has text that is not Unicode";
  if (typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) return firstFault(value);
  return firstFault(Object.keys(value)) ?? firstFault(Object.values(value));
}

function firstFault(values: readonly JsonValue[]): string | undefined {
  for (const value of values) {
    const fault = faultOfJson(value);
    if (fault !== undefined) return fault;
  }
  return undefined;
}
