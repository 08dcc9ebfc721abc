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
};

/** `requirement` is the path of the claim that the provider's settings require. */
type UserRefused = { readonly ok: false; readonly reason: "requirement" | "subject"; readonly path: string };

const MAX_SUBJECT_BYTES = 255;
const MAX_METHODS = 16;
const MAX_TEXT = 255;

/** @param prefixes of the subjects of all providers: no user of one may get a subject of another */
export function userOf(
  { issuer, claims, require, subjectPrefix }: ProviderSettings,
  given: ProviderClaims,
  prefixes: readonly string[],
): { readonly ok: true; readonly user: User } | UserRefused {
  const path = unsatisfied(require, given);
  if (path !== undefined) return { ok: false, reason: "requirement", path };
  const subject = subjectPrefix + given.sub;
  const isOthers = prefixes.some((one) => one.length > subjectPrefix.length && subject.startsWith(one));
  if (isOthers || Buffer.byteLength(subject) > MAX_SUBJECT_BYTES || /\p{Cc}/u.test(subject)) {
    return { ok: false, reason: "subject", path: "sub" };
  }
  const taken = Object.entries(claims).map(([name, path]) => [name, valueAt(given, path)] as const);
  const { auth_time: time, amr, acr, sid } = given;
  return {
    ok: true,
    user: {
      subject,
      claims: Object.fromEntries(taken.filter(([, value]) => value !== undefined && value !== null)),
      authTimeSeconds: typeof time === "number" && Number.isSafeInteger(time) && time > 0 ? time : undefined,
      methods: Array.isArray(amr) ? amr.filter(isShort).slice(0, MAX_METHODS) : [],
      contextClass: isShort(acr) ? acr : "",
      upstream: { issuer, subject: given.sub, ...(isShort(sid) && { sessionId: sid }) },
    },
  };
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
  typeof value === "string" && value !== "" && value.length <= MAX_TEXT && !/\p{Cc}/u.test(value);

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
