/** Converts the parts that messages of both APIs have in common, and checks what the contract cannot express. */
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type Duration, type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { AUTHENTICATION_CLAIMS, RESERVED_CLAIMS } from "../session/claims.ts";
import { invalidRequest } from "../session/errors.ts";
import { type Audience, type Authentication, parseSessionId, type Session, type SessionId } from "../session/model.ts";
import { later, type WallMs, wallMs } from "../session/time.ts";
import { shownTime } from "./times.ts";

/** The maximum length of claims as JSON, in bytes. */
const MAX_CLAIMS_BYTES = 4096;

/** Returns the times of a session by the wall clock, as both APIs return them. */
export function timesOf(session: Session, shiftMs: number) {
  return {
    createTime: shownTime(session.createdAt, shiftMs),
    lastRefreshTime: shownTime(session.lastRefreshedAt, shiftMs),
    idleExpireTime: shownTime(session.idleExpiresAt, shiftMs),
    absoluteExpireTime: shownTime(session.absoluteExpiresAt, shiftMs),
  };
}

export function sessionIdOf(field: string, text: string): SessionId {
  const sid = parseSessionId(text);
  if (sid === undefined) throw invalidRequest(field, "is not a session id");
  return sid;
}

export function audienceOf(one: string, several: readonly string[], byDefault: string): Audience {
  const [first, ...others] = several;
  if (first === undefined) return one || byDefault;
  return others.length === 0 ? first : [first, ...others];
}

/** How far a caller's clock may be ahead, in ms. */
const MAX_CLOCK_SKEW_MS = 60_000;

type AuthenticationFields = {
  readonly authTime?: Timestamp | undefined;
  readonly amr: readonly string[];
  readonly acr: string;
};

/** Returns the authentication in a request; undefined if its fields are empty. @throws ServiceError if its time is out of range */
export function authenticationOf(fields: AuthenticationFields, now: WallMs): Authentication | undefined {
  const { authTime, amr, acr } = fields;
  const time = wallMs(authTime === undefined ? 0 : timestampMs(authTime));
  if (authTime !== undefined && time < 1000) throw invalidRequest("auth_time", "is not after 1970-01-01T00:00:00Z");
  if (time > later(now, MAX_CLOCK_SKEW_MS)) throw invalidRequest("auth_time", "is in the future");
  if (time === 0 && amr.length === 0 && acr === "") return undefined;
  return { time: later(time, -(time % 1000)), methods: [...amr], contextClass: acr };
}

/** Returns an optional duration in ms; `maxMs` if it is absent. @throws ServiceError if it is longer than `maxMs` */
export function durationOf(field: string, duration: Duration | undefined, maxMs: number): number {
  if (duration === undefined) return maxMs;
  const ms = Number(duration.seconds) * 1000 + Math.trunc(duration.nanos / 1e6);
  if (ms > maxMs) throw invalidRequest(field, `must be at most ${maxMs / 1000}s`);
  return ms;
}

/** Returns the claims of a request as JSON text. @param reserved names of claims that only the service sets @throws ServiceError */
export function claimsOf(claims: JsonObject | undefined): string {
  if (claims === undefined) return "{}";
  for (const name of RESERVED_CLAIMS) {
    if (Object.hasOwn(claims, name)) throw invalidRequest(`claims.${name}`, "is a reserved claim");
  }
  for (const name of AUTHENTICATION_CLAIMS) {
    if (Object.hasOwn(claims, name)) throw invalidRequest(`claims.${name}`, `is set by the field ${name}`);
  }
  const fault = faultOfJson(claims);
  if (fault !== undefined) throw invalidRequest("claims", fault);
  const text = JSON.stringify(claims);
  if (Buffer.byteLength(text) > MAX_CLAIMS_BYTES)
    throw invalidRequest("claims", `is longer than ${MAX_CLAIMS_BYTES} bytes as JSON`);
  return text;
}

/**
 * Returns why a value changes when it is written as JSON and read again. JavaScript reads `1e400` as Infinity, which becomes null, and
 * accepts half of a surrogate pair, which UTF-8 cannot hold.
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

/** Returns the number of a value. A value that the enum does not have does not compile. */
export function numberOf<Name extends string, Enum extends { readonly [name in Uppercase<Name>]: number }>(
  numbers: Enum,
  name: Name,
): Enum[Uppercase<Name>] {
  return numbers[name.toUpperCase() as Uppercase<Name>];
}

type Named<Enum> = Lowercase<Exclude<keyof Enum & string, "UNSPECIFIED">>;

/** Returns the value of a number; undefined if the number is 0 (UNSPECIFIED), or none of the enum. */
export function nameOf<Enum extends Readonly<Record<string, number>>>(
  numbers: Enum,
  number: number,
): Named<Enum> | undefined {
  const [name] = Object.entries(numbers).find(([, each]) => each === number && each !== 0) ?? [];
  return name?.toLowerCase() as Named<Enum> | undefined;
}
