/** The device cookies: one that the browser renews, and the mark, which stays as long as the session. */
import type { CookieSettings } from "../../config/cookie.ts";
import { cookieValues } from "../../net/cookie-values.ts";
import { cookieAttributes, expireIn, expiry, plainName } from "./cookie-scopes.ts";

/** The name of a cookie, as the cookie of the refresh token has it, and these. */
const DEVICE = "_device";
const MARK = "_device_mark";

/** Values that are looked at: more were planted. */
const MAX_VALUES = 4;

/** How long before the service does a browser take its device cookie for expired: the request must be here by then. */
const MAX_MARGIN_MS = 30_000;
const MARGIN_SHARE = 0.1;

export type DeviceCookie = {
  readonly name: string;
  /** Domain, Path, HttpOnly, Secure and SameSite, as a browser compares them. */
  readonly attributes: string;
  /** The values in a `Cookie` header: those of device cookies before those of marks. */
  read(header: string | null): readonly string[];
  /** The `Set-Cookie` values of both. @param secondsLeft of the session */
  set(value: string, mark: string, secondsLeft: number): readonly string[];
  /** The `Set-Cookie` values that make the browser renew. */
  expire(): readonly string[];
  /** The `Set-Cookie` values that remove both. */
  clear(): readonly string[];
};

/** How long browsers keep a device cookie, seconds. @param lifeMs how long it is fresh */
function deviceCookieMaxAge(lifeMs: number): number {
  return Math.max(1, Math.floor((lifeMs - Math.min(MAX_MARGIN_MS, lifeMs * MARGIN_SHARE)) / 1000));
}

/**
 * While a deployment moves to a prefixed name, the cookies of the plain one are read too, as that of the refresh token is: its browsers
 * would be refused.
 *
 * @param clock ms since the epoch
 */
export function deviceCookie(settings: CookieSettings, lifeMs: number, clock: () => number): DeviceCookie {
  const name = settings.name + DEVICE;
  const mark = settings.name + MARK;
  const attributes = cookieAttributes(settings);
  const plain = plainName(settings);
  const { migrateUntilMs, previousScopes } = settings;
  const migrating = () => migrateUntilMs !== undefined && clock() < migrateUntilMs;
  const named = (suffixes: readonly string[], base: string) =>
    suffixes.map((suffix) => ({ ...settings, name: base + suffix }));
  const remove = (...suffixes: readonly string[]) => {
    const all = [...named(suffixes, settings.name), ...(migrating() ? named(suffixes, plain) : [])];
    return all.flatMap((each) => [expiry(each), ...expireIn(previousScopes, each)]);
  };
  const replaced = (each: string) => expireIn(previousScopes, { ...settings, name: each });
  const maxAge = deviceCookieMaxAge(lifeMs);
  const withAge = (which: string, value: string, seconds: number) =>
    `${which}=${value}; ${attributes}; Max-Age=${seconds}`;
  return {
    name,
    attributes,
    read(header) {
      if (!header?.includes(DEVICE)) return [];
      const values = migrating()
        ? [name, plain + DEVICE, mark, plain + MARK].flatMap((each) => cookieValues(header, each))
        : [...cookieValues(header, name), ...cookieValues(header, mark)];
      return values.slice(0, MAX_VALUES);
    },
    set: (value, markValue, secondsLeft) => [
      withAge(name, value, maxAge),
      withAge(mark, markValue, secondsLeft),
      ...replaced(name),
      ...replaced(mark),
    ],
    expire: () => remove(DEVICE),
    clear: () => remove(DEVICE, MARK),
  };
}
