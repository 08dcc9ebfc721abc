/** The refresh token cookie (RFC 6265bis): read, set, cleared. */
import type { CookieSettings } from "../../config/cookie.ts";

/** Where the browser sends the refresh token unless configured otherwise. */
const DEFAULT_PATH = "/v1/auth";
const PREFIX = /^__(Host|Secure)-/i;

/** The value of a cookie in a `Cookie` header: `ambiguous` when it is there with different values. */
function read(header: string, name: string): string | undefined | "ambiguous" {
  let found: string | undefined;
  for (const pair of header.split(";")) {
    const equals = pair.indexOf("=");
    if (equals < 0 || pair.slice(0, equals).trim() !== name) continue;
    const value = pair.slice(equals + 1).trim();
    if (found !== undefined && found !== value) return "ambiguous";
    found = value;
  }
  return found;
}

export type RefreshCookie = {
  /** The refresh token of a `Cookie` header. `ambiguous` is no token's text. */
  read(header: string | null): string | undefined | "ambiguous";
  /** The `Set-Cookie` value that keeps `token` for `maxAge` seconds. */
  set(token: string, maxAge: number): string;
  /** The `Set-Cookie` values that remove it. */
  readonly clear: readonly string[];
};

/**
 * With a prefixed name (`__Secure-refresh_token`) the plain name is still read, and cleared on logout,
 * so that a deployment can move over.
 */
export function refreshCookie(settings: CookieSettings): RefreshCookie {
  const { name, domain, sameSite, secure } = settings;
  const plain = name.replace(PREFIX, "");
  // The __Host- prefix demands Path=/.
  const path = settings.path ?? (/^__Host-/i.test(name) ? "/" : DEFAULT_PATH);
  const attributes = (where: string) =>
    `; Path=${where}${domain === undefined ? "" : `; Domain=${domain}`}; HttpOnly` +
    `${secure ? "; Secure" : ""}; SameSite=${sameSite}; Max-Age=`;
  const own = attributes(path);
  const names = plain === name ? [name] : [name, plain];
  return {
    read(header) {
      if (header === null) return undefined;
      for (const candidate of names) {
        const value = read(header, candidate);
        if (value !== undefined) return value;
      }
      return undefined;
    },
    set: (token, maxAge) => `${name}=${token}${own}${maxAge}`,
    // A cookie is removed where it was set, and the plain one was set without the demands of a prefix.
    clear: names.map((n) => `${n}=${n === name ? own : attributes(settings.path ?? DEFAULT_PATH)}0`),
  };
}
