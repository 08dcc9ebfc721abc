/**
 * The scopes in which a cookie is set now, and in which it was set before. A browser keeps a cookie of the same name for each scope. After
 * a change of `COOKIE_DOMAIN` or `COOKIE_PATH` it sends both cookies, until the old one is expired in its own scope.
 */
import { isIP } from "node:net";
import {
  type CookieScope,
  type CookieSettings,
  cookiePath,
  DEFAULT_COOKIE_PATH,
  isHostOnly,
} from "../../config/cookie.ts";

const PATHS = ["/", "/v1", DEFAULT_COOKIE_PATH];
/** How many parent domains of a host are tried. For more, the headers of a response would exceed the limits of proxies. */
const MAX_DOMAINS = 3;

const scopeOf = (settings: CookieSettings): CookieScope => ({ domain: settings.domain, path: cookiePath(settings) });

/** Returns the attributes of a cookie without its lifetime, in the order in which they are set. */
export function cookieAttributes(settings: CookieSettings, { domain, path } = scopeOf(settings)): string {
  const { secure, sameSite, partitioned } = settings;
  const where = `Path=${path}${domain === undefined ? "" : `; Domain=${domain}`}`;
  return `${where}; HttpOnly${secure ? "; Secure" : ""}; SameSite=${sameSite}${partitioned ? "; Partitioned" : ""}`;
}

/** Returns the `Set-Cookie` value that removes a cookie from a scope. */
export function expiry(settings: CookieSettings, scope = scopeOf(settings)): string {
  return `${settings.name}=; ${cookieAttributes(settings, scope)}; Max-Age=0`;
}

/**
 * Returns the `Set-Cookie` values that remove from a scope a cookie that is not in use there. While cookies are partitioned, a browser may
 * still have one from before: that is another cookie, and is removed without the attribute.
 */
export function expireOld(settings: CookieSettings, scope: CookieScope): readonly string[] {
  const forms = settings.partitioned ? [settings, { ...settings, partitioned: false }] : [settings];
  return forms.map((form) => expiry(form, scope));
}

/**
 * Returns the `Set-Cookie` values that remove a cookie from these scopes, except from its current one: there, browsers that do not
 * partition cookies would lose the one in use.
 * @param hasBoth whether a scope may have cookies from before they were partitioned
 */
export function expireIn(
  scopes: readonly CookieScope[],
  settings: CookieSettings,
  hasBoth: (scope: CookieScope) => boolean = () => true,
): readonly string[] {
  // A cookie with the prefix __Host- has only one possible scope.
  if (isHostOnly(settings.name)) return [];
  const own = keyOf(scopeOf(settings));
  const others = new Map(scopes.map((scope) => [keyOf(scope), scope]));
  others.delete(own);
  return [...others.values()].flatMap((scope) =>
    hasBoth(scope) ? expireOld(settings, scope) : [expiry(settings, scope)],
  );
}

/** Returns a text that identifies a scope. The leading dot of a domain has no meaning (RFC 6265bis section 5.6.3). */
const keyOf = ({ domain, path }: CookieScope) => `${domain?.replace(/^\./, "").toLowerCase() ?? ""}${path}`;

/** Returns all scopes whose cookies a browser may send to the routes of a host. */
export function scopesOfHost(host: string): readonly CookieScope[] {
  const labels = isIP(host.replace(/^\[|\]$/g, "")) === 0 ? host.split(".") : [];
  const parents = labels.slice(0, -1).map((_, at) => labels.slice(at).join("."));
  return [undefined, ...parents.slice(0, MAX_DOMAINS)].flatMap((domain) => PATHS.map((path) => ({ domain, path })));
}
