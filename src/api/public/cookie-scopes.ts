/**
 * Where a cookie is set, and where it was set before: a browser keeps one of the same name for each scope, so that after a change of
 * `COOKIE_DOMAIN` or `COOKIE_PATH` it sends an old one beside the new one until the old one is expired in its own scope.
 */
import { isIP } from "node:net";
import type { CookieScope, CookieSettings } from "../../config/cookie.ts";

/** Where the browser sends the refresh token unless configured otherwise. */
const DEFAULT_PATH = "/v1/auth";
const PATHS = ["/", "/v1", DEFAULT_PATH];
const PREFIX = /^__(Host|Secure)-/i;
/** How many parents of a host are tried: a proxy in front bounds the headers of a response. */
const MAX_DOMAINS = 3;

/** The name of a cookie without its prefix. */
export function plainName({ name }: Pick<CookieSettings, "name">): string {
  return name.replace(PREFIX, "");
}

const isHostOnly = (name: string) => /^__Host-/i.test(name);

/** The scope that the configuration gives a cookie. */
function scopeOf({ name, path, domain }: Pick<CookieSettings, "name" | "path" | "domain">): CookieScope {
  // The __Host- prefix demands Path=/.
  return { domain, path: path ?? (isHostOnly(name) ? "/" : DEFAULT_PATH) };
}

/** The attributes of a cookie, in the order in which they are set; without its life. */
export function cookieAttributes(settings: CookieSettings, { domain, path } = scopeOf(settings)): string {
  const { secure, sameSite } = settings;
  return `Path=${path}${domain === undefined ? "" : `; Domain=${domain}`}; HttpOnly${secure ? "; Secure" : ""}; SameSite=${sameSite}`;
}

/** A `Set-Cookie` value that removes a cookie from a scope. */
export function expiry(settings: CookieSettings, scope = scopeOf(settings)): string {
  return `${settings.name}=; ${cookieAttributes(settings, scope)}; Max-Age=0`;
}

/** The `Set-Cookie` values that remove a cookie from those of the scopes that it is not set in. */
export function expireIn(scopes: readonly CookieScope[], settings: CookieSettings): readonly string[] {
  // Of such a name a browser has one cookie at the most.
  if (isHostOnly(settings.name)) return [];
  const own = keyOf(scopeOf(settings));
  const others = new Map(scopes.map((scope) => [keyOf(scope), scope]));
  others.delete(own);
  return [...others.values()].map((scope) => expiry(settings, scope));
}

/** A leading dot means nothing (RFC 6265bis section 5.6.3). */
const keyOf = ({ domain, path }: CookieScope) => `${domain?.replace(/^\./, "").toLowerCase() ?? ""}${path}`;

/** All scopes whose cookies a browser may send to the routes of a host. */
export function scopesOfHost(host: string): readonly CookieScope[] {
  const labels = isIP(host.replace(/^\[|\]$/g, "")) === 0 ? host.split(".") : [];
  const parents = labels.slice(0, -1).map((_, at) => labels.slice(at).join("."));
  return [undefined, ...parents.slice(0, MAX_DOMAINS)].flatMap((domain) => PATHS.map((path) => ({ domain, path })));
}
