/** The device cookies: one that the browser renews, and the mark, which stays as long as the session. */
import type { CookieSettings } from "../../config/cookie.ts";
import { cookieAttributes, readAll } from "./cookie.ts";

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
  /** The values in a `Cookie` header, the most telling ones first. */
  read(header: string | null): readonly string[];
  /** The `Set-Cookie` values of both. @param secondsLeft of the session */
  set(value: string, mark: string, secondsLeft: number): readonly string[];
  /** The `Set-Cookie` value that makes the browser renew. */
  expire(): string;
  /** The `Set-Cookie` values that remove both. */
  clear(): readonly string[];
};

/** How long browsers keep a device cookie, seconds. @param lifeMs how long it is fresh */
export function deviceCookieMaxAge(lifeMs: number): number {
  return Math.max(1, Math.floor((lifeMs - Math.min(MAX_MARGIN_MS, lifeMs * MARGIN_SHARE)) / 1000));
}

export function deviceCookie(settings: CookieSettings, lifeMs: number): DeviceCookie {
  const name = settings.name + DEVICE;
  const mark = settings.name + MARK;
  const attributes = cookieAttributes(settings);
  const maxAge = deviceCookieMaxAge(lifeMs);
  const withAge = (which: string, value: string, seconds: number) =>
    `${which}=${value}; ${attributes}; Max-Age=${seconds}`;
  return {
    name,
    attributes,
    read(header) {
      if (header === null || !header.includes(name)) return [];
      return [...readAll(header, name), ...readAll(header, mark)].slice(0, MAX_VALUES);
    },
    set: (value, markValue, secondsLeft) => [withAge(name, value, maxAge), withAge(mark, markValue, secondsLeft)],
    expire: () => withAge(name, "", 0),
    clear: () => [withAge(name, "", 0), withAge(mark, "", 0)],
  };
}
