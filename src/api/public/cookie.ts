/** The refresh token cookie (RFC 6265bis) and the hint beside it: read, set, cleared. */
import type { CookieSettings } from "../../config/cookie.ts";
import { AMBIGUOUS, type PresentedCookie } from "../../session/refresh.ts";

/** Where the browser sends the refresh token unless configured otherwise. */
const DEFAULT_PATH = "/v1/auth";
const PREFIX = /^__(Host|Secure)-/i;

/**
 * Without SP and HTAB around it (RFC 6265bis section 5.6). `trim()` takes all that Unicode calls a space, and so makes our name of
 * `\u00a0__Host-…`, which any sibling domain may set.
 */
function trimmed(text: string, start: number, end: number): string {
  let from = start;
  let to = end;
  while (from < to && isPadding(text.charCodeAt(from))) from++;
  while (from < to && isPadding(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}

const isPadding = (code: number) => code === 0x20 || code === 0x09;

/** All values of a cookie in a `Cookie` header: a sibling domain may have planted some. */
export function readAll(header: string, name: string): readonly string[] {
  const values: string[] = [];
  for (const pair of header.split(";")) {
    const equals = pair.indexOf("=");
    if (equals >= 0 && trimmed(pair, 0, equals) === name) values.push(trimmed(pair, equals + 1, pair.length));
  }
  return values;
}

/** The value of a cookie in a `Cookie` header. */
function read(header: string, name: string): PresentedCookie {
  const values = readAll(header, name);
  return values.every((value) => value === values[0]) ? values[0] : AMBIGUOUS;
}

/** The name of a cookie without its prefix. */
export function plainName({ name }: Pick<CookieSettings, "name">): string {
  return name.replace(PREFIX, "");
}

/** The attributes of a cookie beside `name`, in the order in which they are set; without its life. */
export function cookieAttributes({ name, path, domain, secure, sameSite }: CookieSettings): string {
  // The __Host- prefix demands Path=/.
  const own = path ?? (/^__Host-/i.test(name) ? "/" : DEFAULT_PATH);
  const scope = domain === undefined ? "" : `; Domain=${domain}`;
  return `Path=${own}${scope}; HttpOnly${secure ? "; Secure" : ""}; SameSite=${sameSite}`;
}

export type RefreshCookie = {
  /** The refresh token of a `Cookie` header. */
  read(header: string | null): PresentedCookie;
  /** The `Set-Cookie` values that keep `token` of the session `sid` for `maxAge` seconds: the first is the token's. */
  set(token: string, maxAge: number, sid: string): readonly [string, ...string[]];
  /** The `Set-Cookie` values that remove it. */
  clear(): readonly string[];
};

/**
 * With a prefixed name (`__Secure-refresh_token`) the plain name is read too until `migrateUntilMs`, so that a deployment can move
 * over. No longer: a sibling domain can plant a plain name, and with it a session of its own.
 *
 * @param clock ms since the epoch
 */
export function refreshCookie(settings: CookieSettings, clock: () => number): RefreshCookie {
  const { name, migrateUntilMs, hintName } = settings;
  const plain = plainName(settings);
  const migrating = () => migrateUntilMs !== undefined && clock() < migrateUntilMs;
  const attributes = cookieAttributes(settings);
  // Scripts of every page may read the hint. A session id is no credential; a tab compares it with that of a token it holds.
  const hintAttributes = cookieAttributes({ ...settings, path: "/" }).replace("; HttpOnly", "");
  const hint = (value: string, maxAge: number) => `${hintName}=${value}; ${hintAttributes}; Max-Age=${maxAge}`;
  return {
    read(header) {
      if (header === null) return undefined;
      return read(header, name) ?? (migrating() ? read(header, plain) : undefined);
    },
    set(token, maxAge, sid) {
      const value = `${name}=${token}; ${attributes}; Max-Age=${maxAge}`;
      return hintName === undefined ? [value] : [value, hint(sid, maxAge)];
    },
    clear() {
      const cleared = [`${name}=; ${attributes}; Max-Age=0`];
      // A cookie is removed where it was set, and the plain one was set without the demands of a prefix.
      if (migrating()) cleared.push(`${plain}=; ${cookieAttributes({ ...settings, name: plain })}; Max-Age=0`);
      if (hintName !== undefined) cleared.push(hint("", 0));
      return cleared;
    },
  };
}
