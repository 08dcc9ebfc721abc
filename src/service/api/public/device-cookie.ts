/**
 * Reads and writes the two device cookies. The browser renews the first one, the device cookie, whenever it expires. The second one, the
 * mark, lives as long as the session and shows that the session is bound to this browser.
 */

import { cookieValues } from "../../../platform/net/cookie-values.ts";
import { type CookieSettings, plainName } from "../../config/cookie.ts";
import { cookieAttributes, expireIn, expiry } from "./cookie-scopes.ts";

/** The suffixes that the names of the device cookies add to the name of the refresh token's cookie. Both contain the first one. */
export const DEVICE = "_device";
const MARK = "_device_mark";

/** How many values of device cookies are read from a request. An attacker has set any further ones. */
const MAX_VALUES = 4;

/**
 * A device cookie expires in the browser by this share of its life before the service stops accepting it, because a request takes time to
 * arrive.
 */
const MARGIN_SHARE = 0.1;
const MAX_MARGIN_MS = 30_000;

export type DeviceCookie = {
  readonly name: string;
  /** Domain, Path, HttpOnly, Secure and SameSite, in the form in which a browser compares them. */
  readonly attributes: string;
  /** Returns the values in a `Cookie` header: those of the device cookie, then those of the mark, which lives as long as the session. */
  read(header: string | null): readonly string[];
  /** @param secondsLeft how long the session still lives */
  set(value: string, mark: string, secondsLeft: number): readonly string[];
  /** Returns the `Set-Cookie` values that remove the device cookie, so that the browser renews it. */
  expire(): readonly string[];
  /** Returns the `Set-Cookie` values that remove the device cookie and the cookie that shows that the session is bound to this browser. */
  clear(): readonly string[];
};

/** Returns for how many seconds browsers keep a device cookie. @param lifeMs how long the service accepts its value */
function deviceCookieMaxAge(lifeMs: number): number {
  return Math.max(1, Math.floor((lifeMs - Math.min(MAX_MARGIN_MS, lifeMs * MARGIN_SHARE)) / 1000));
}

/**
 * While a deployment moves to a prefixed name, the cookies with the plain name are read too. Otherwise browsers with these cookies would be
 * refused. @param clock ms since the epoch
 */
export function deviceCookie(settings: CookieSettings, lifeMs: number, clock: () => number): DeviceCookie {
  const name = settings.name + DEVICE;
  const mark = settings.name + MARK;
  const attributes = cookieAttributes(settings);
  const plain = plainName(settings.name);
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
