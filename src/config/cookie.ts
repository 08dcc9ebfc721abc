/** Settings of the refresh token cookie, checked as browsers check the cookie (RFC 6265bis section 5). */

const PREFIX = /^__(Host|Secure)-/i;

export type CookieSettings = {
  readonly name: string;
  readonly domain: string | undefined;
  readonly path: string | undefined;
  readonly sameSite: "Strict" | "Lax" | "None";
  readonly secure: boolean;
};

/** Everything for which a browser would drop the cookie, silently: one line each. */
export function cookieFaults(cookie: CookieSettings): string[] {
  const faults: string[] = [];
  const host = /^__Host-/i.test(cookie.name);
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(cookie.name)) faults.push("COOKIE_NAME is not a cookie name (RFC 6265)");
  if (cookie.domain !== undefined && !/^\.?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$/.test(cookie.domain)) {
    faults.push("COOKIE_DOMAIN is not a domain name");
  }
  if (cookie.path !== undefined && !/^\/[!-:<-~]*$/.test(cookie.path)) {
    faults.push("COOKIE_PATH is not an absolute path without spaces and semicolons");
  }
  if (cookie.sameSite === "None" && !cookie.secure) {
    faults.push("COOKIE_SAMESITE=None needs COOKIE_SECURE=true: browsers drop the cookie otherwise");
  }
  if (PREFIX.test(cookie.name) && !cookie.secure) {
    faults.push("COOKIE_NAME with a __Secure- or __Host- prefix needs COOKIE_SECURE=true: browsers drop it otherwise");
  }
  if (host && cookie.domain !== undefined) {
    faults.push("COOKIE_NAME with the __Host- prefix allows no COOKIE_DOMAIN: browsers drop it otherwise");
  }
  if (host && cookie.path !== undefined && cookie.path !== "/") {
    faults.push("COOKIE_NAME with the __Host- prefix allows no COOKIE_PATH but /: browsers drop it otherwise");
  }
  return faults;
}
