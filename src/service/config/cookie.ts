/** Settings of the cookies, checked as browsers check cookies (RFC 6265bis section 5). */
import { isPublicSuffix } from "./public-suffix.ts";
import { invalid, type Parsed, valid } from "./values.ts";

/** The path of the cookie, unless its prefix requires another one. */
export const DEFAULT_COOKIE_PATH = "/v1/auth";

const PREFIX = /^__(Host|Secure)-/i;
const DOMAIN = /^\.?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*$/;
const PATH = /^\/[!-:<-~]*$/;
const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

/** The hosts and paths to which a browser sends a cookie. Without a domain, that is only the host that set it. */
export type CookieScope = { readonly domain: string | undefined; readonly path: string };

export type CookieSettings = {
  readonly name: string;
  readonly domain: string | undefined;
  readonly path: string | undefined;
  readonly sameSite: "Strict" | "Lax" | "None";
  readonly secure: boolean;
  /** Whether browsers keep the cookies apart for each top-level site (CHIPS), so that they may be set on pages of other sites. */
  readonly partitioned: boolean;
  /** The time until which the cookie is also read under its name without `__Host-` or `__Secure-`, in ms since the epoch. */
  readonly migrateUntilMs: number | undefined;
  /** Other scopes in which this deployment has set the cookie earlier. The cookies there are removed. */
  readonly previousScopes: readonly CookieScope[];
  /** The name of the cookie from which scripts learn that there is a session. */
  readonly hintName: string | undefined;
  /** The name of the cookie in which servers that render pages receive the access token. */
  readonly accessName: string | undefined;
};

/** Returns the faults for which browsers would silently ignore a cookie. */
export function cookieFaults(cookie: CookieSettings): string[] {
  const faults = nameFaults("COOKIE_NAME", cookie.name, cookie);
  if (cookie.domain !== undefined) {
    if (!DOMAIN.test(cookie.domain)) faults.push("COOKIE_DOMAIN is not a domain name");
    else if (isPublicSuffix(cookie.domain)) {
      faults.push(`COOKIE_DOMAIN is ${cookie.domain}, under which anybody may have a name: browsers drop the cookie`);
    }
  }
  if (cookie.path !== undefined && !PATH.test(cookie.path)) {
    faults.push("COOKIE_PATH is not an absolute path without spaces and semicolons");
  }
  if (cookie.sameSite === "None" && !cookie.secure) {
    faults.push("COOKIE_SAMESITE=None needs COOKIE_SECURE=true: browsers drop the cookie otherwise");
  }
  if (cookie.partitioned && (cookie.sameSite !== "None" || !cookie.secure)) {
    faults.push(
      "COOKIE_PARTITIONED=on needs COOKIE_SAMESITE=None and COOKIE_SECURE=true: it is for pages of other sites",
    );
  }
  if (isHostOnly(cookie.name) && cookie.path !== undefined && cookie.path !== "/") {
    faults.push("COOKIE_NAME with the __Host- prefix allows no COOKIE_PATH but /: browsers drop it otherwise");
  }
  if (cookie.migrateUntilMs !== undefined && !PREFIX.test(cookie.name)) {
    faults.push("COOKIE_MIGRATE_UNTIL needs a COOKIE_NAME with a __Secure- or __Host- prefix: there is no other name");
  }
  const { hintName, accessName } = cookie;
  faults.push(...companionFaults("SESSION_HINT_COOKIE", hintName, cookie));
  faults.push(...companionFaults("ACCESS_COOKIE", accessName, cookie));
  if (accessName !== undefined && accessName === hintName) {
    faults.push("ACCESS_COOKIE must differ from SESSION_HINT_COOKIE");
  }
  return faults;
}

function companionFaults(variable: string, name: string | undefined, cookie: CookieSettings): string[] {
  if (name === undefined) return [];
  const faults = nameFaults(variable, name, cookie);
  if (name === cookie.name || name === plainName(cookie.name)) {
    faults.push(`${variable} must differ from COOKIE_NAME, with and without its prefix`);
  }
  return faults;
}

/** Parses a scope of `COOKIE_PREVIOUS_SCOPES`: `/v1/auth`, or with a domain `example.com/v1/auth`. */
export function cookieScope(text: string): Parsed<CookieScope> {
  const slash = text.indexOf("/");
  const domain = text.slice(0, Math.max(0, slash));
  const path = text.slice(domain.length);
  if (!PATH.test(path) || (domain !== "" && (!DOMAIN.test(domain) || isPublicSuffix(domain)))) {
    return invalid("has an item that is neither a path such as /v1/auth nor a domain with one, such as example.com/");
  }
  return valid({ domain: domain === "" ? undefined : domain, path });
}

/** Whether a cookie has the prefix `__Host-`, for which browsers require `Path=/` and allow no domain. Its case has no meaning. */
export const isHostOnly = (name: string): boolean => /^__Host-/i.test(name);

export const plainName = (name: string): string => name.replace(PREFIX, "");

export const cookiePath = ({ name, path }: Pick<CookieSettings, "name" | "path">): string =>
  path ?? (isHostOnly(name) ? "/" : DEFAULT_COOKIE_PATH);

function nameFaults(variable: string, name: string, { secure, domain }: CookieSettings): string[] {
  const faults: string[] = [];
  if (!NAME.test(name)) faults.push(`${variable} is not a cookie name (RFC 6265)`);
  if (PREFIX.test(name) && !secure) {
    faults.push(`${variable} with a __Secure- or __Host- prefix needs COOKIE_SECURE=true: browsers drop it otherwise`);
  }
  if (isHostOnly(name) && domain !== undefined) {
    faults.push(`${variable} with the __Host- prefix allows no COOKIE_DOMAIN: browsers drop it otherwise`);
  }
  return faults;
}
