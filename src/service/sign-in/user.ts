/** Decides who a user of a provider is to the service, by the configuration of the provider. */
import type { ProviderSettings, Requirements } from "../config/providers.ts";

export type ProviderClaims = Readonly<Record<string, unknown>> & { readonly sub: string };

export type User = {
  readonly subject: string;
  readonly claims: Readonly<Record<string, unknown>>;
  /** When the user authenticated, in seconds since the epoch; undefined if the provider does not report it. */
  readonly authTimeSeconds: number | undefined;
  readonly methods: readonly string[];
  readonly contextClass: string;
  readonly upstream: { readonly issuer: string; readonly subject: string; readonly sessionId?: string };
  /** When sessions of this login end at the latest, in ms since the epoch; undefined if the provider does not limit them. */
  readonly endsAtMs: number | undefined;
};

/**
 * `requirement`: the user lacks what the provider's settings require. `over`: the provider has ended the login already. `malformed`: a
 * claim has another type than its specification gives it.
 */
type UserRefused = {
  readonly ok: false;
  readonly reason: "requirement" | "subject" | "over" | "malformed";
  /** The path of the claim. */
  readonly path: string;
};

const MAX_SUBJECT_BYTES = 255;
const MAX_METHODS = 16;
const MAX_TEXT = 255;
/** Control characters, and surrogates without their other half: stores replace all of these by the same character. */
const UNFIT = /[\p{Cc}\p{Cs}]/u;

/**
 * @param prefixes of the subjects of all providers: no user of one may get a subject of another
 * @param nowMs the wall clock, in ms since the epoch
 */
export function userOf(
  { issuer, claims, require, subjectPrefix }: ProviderSettings,
  given: ProviderClaims,
  prefixes: readonly string[],
  nowMs: number,
): { readonly ok: true; readonly user: User } | UserRefused {
  const path = unsatisfied(require, given);
  if (path !== undefined) return { ok: false, reason: "requirement", path };
  const subject = subjectPrefix + given.sub;
  const isOthers = prefixes.some((one) => one.length > subjectPrefix.length && subject.startsWith(one));
  if (given.sub === "" || isOthers || Buffer.byteLength(subject) > MAX_SUBJECT_BYTES || UNFIT.test(subject)) {
    return { ok: false, reason: "subject", path: "sub" };
  }
  const endsAtMs = endOf(given);
  if (endsAtMs === "malformed") return { ok: false, reason: endsAtMs, path: SESSION_EXPIRY };
  if (endsAtMs !== undefined && endsAtMs <= nowMs) return { ok: false, reason: "over", path: SESSION_EXPIRY };
  const taken = Object.entries(claims).map(([name, path]) => [name, valueAt(given, path)] as const);
  const { auth_time: time, amr, acr, sid } = given;
  return {
    ok: true,
    user: {
      subject,
      claims: Object.fromEntries(taken.filter(([, value]) => value !== undefined && value !== null)),
      // Nobody has authenticated in the future: the provider's clock is ahead.
      authTimeSeconds: isTime(time) ? Math.min(time, Math.floor(nowMs / 1000)) : undefined,
      methods: Array.isArray(amr) ? amr.filter(isShort).slice(0, MAX_METHODS) : [],
      contextClass: isShort(acr) ? acr : "",
      upstream: { issuer, subject: given.sub, ...(isShort(sid) && { sessionId: sid }) },
      endsAtMs,
    },
  };
}

const isTime = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) > 0;

/** The claim by which a provider says when sessions of a login end (OpenID Connect Enterprise Extensions 1.0). */
const SESSION_EXPIRY = "session_expiry";

/** Returns when sessions of a login end, in ms since the epoch; undefined if the provider does not say it. */
export function endOf({ [SESSION_EXPIRY]: end }: ProviderClaims): number | "malformed" | undefined {
  if (end === undefined || end === null) return undefined;
  if (typeof end !== "number" || !Number.isFinite(end)) return "malformed";
  return Math.min(Math.floor(end * 1000), Number.MAX_SAFE_INTEGER);
}

/** Returns the path of a claim that does not have any of the required values; undefined if the claims satisfy all requirements. */
export function unsatisfied(require: Requirements, claims: ProviderClaims): string | undefined {
  return Object.entries(require).find(([path, values]) => {
    const value = valueAt(claims, path);
    const found: readonly unknown[] = Array.isArray(value) ? value : [value];
    return !values.some((one) => found.includes(one));
  })?.[0];
}

export const isShort = (value: unknown): value is string =>
  typeof value === "string" && value !== "" && value.length <= MAX_TEXT && !UNFIT.test(value);

/** Returns the value of a claim by its name, or by the names on the way to it: `realm_access.roles`. */
export function valueAt(claims: Readonly<Record<string, unknown>>, path: string): unknown {
  if (Object.hasOwn(claims, path)) return claims[path];
  let value: unknown = claims;
  for (const name of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Readonly<Record<string, unknown>>)[name];
  }
  return value;
}
