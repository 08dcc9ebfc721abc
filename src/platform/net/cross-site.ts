/**
 * Decides whether a browser was led to send a request by a page of another site (CSRF). Every listener, kit and gateway asks this module,
 * for all credentials that browsers send by themselves: cookies, client certificates, Basic.
 */

/** The headers by which browsers report where a request comes from. `Headers` joins the values of a header that is repeated. */
type Sender = {
  /** `Sec-Fetch-Site` (Fetch Metadata). Browsers send it to https and to localhost only. */
  readonly site: string | null;
  readonly origin: string | null;
};

export type CrossSiteRules = {
  readonly isAllowed: (origin: string) => boolean;
  /** Whether sibling domains under the same registrable domain may call if they name no origin. */
  readonly allowSameSite: boolean;
  /** Whether allowed origins may be on other sites. With cookies that only makes sense with SameSite=None. */
  readonly allowCrossSite: boolean;
};

/** No page of another origin may call. */
export const OWN_PAGES_ALONE: CrossSiteRules = { isAllowed: () => false, allowSameSite: false, allowCrossSite: false };

/**
 * Returns the header because of which a request must be refused; undefined if the request is allowed. Fetch Metadata counts first, since
 * pages can hide their origin (`Referrer-Policy: no-referrer` sends `Origin: null`, also to the own origin) and proxies replace `Host`,
 * while nothing but the browser sets `Sec-Fetch-Site`. A request with neither header comes from no browser, and is allowed.
 * @param isOwn whether an origin is the one that the request was sent to
 */
export function crossSiteFault(
  { site, origin }: Sender,
  isOwn: (origin: string) => boolean,
  { isAllowed, allowSameSite, allowCrossSite }: CrossSiteRules,
): "sec-fetch-site" | "origin" | undefined {
  switch (site) {
    case "same-origin":
    case "none":
      return undefined;
    case null:
      return origin === null || isOwn(origin) || isAllowed(origin) ? undefined : "origin";
    case "same-site":
      if (origin === null) return allowSameSite ? undefined : "sec-fetch-site";
      return isAllowed(origin) || (allowSameSite && isOwn(origin)) ? undefined : "origin";
    case "cross-site":
      return allowCrossSite && origin !== null && isAllowed(origin) ? undefined : "sec-fetch-site";
    default:
      return "sec-fetch-site";
  }
}

/** The permission that a refused request lacks. `host`: its origin has the own host, so a proxy has replaced the scheme or the port. */
export type MissingPermission = "host" | "origin" | "same_site" | "cross_site";

/** Returns the permissions that a refused request lacks, for operators who must find out why a front end has no access. */
export function missingPermissions(
  { site, origin }: Sender,
  ownOrigin: string | null,
  { isAllowed, allowSameSite, allowCrossSite }: CrossSiteRules,
): readonly MissingPermission[] {
  const missing: MissingPermission[] = [];
  const named = origin !== null && origin !== "null" && origin !== ownOrigin;
  const sameHost = named && URL.parse(origin)?.hostname === URL.parse(ownOrigin ?? "")?.hostname;
  if (site === null && sameHost) missing.push("host");
  if (site === "same-site" && origin === null && !allowSameSite) missing.push("same_site");
  if (site === "cross-site" && !allowCrossSite) missing.push("cross_site");
  if (named && !isAllowed(origin)) missing.push("origin");
  return missing;
}

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Returns whether the method of a request is safe: it changes nothing (RFC 9110 section 9.2.1). */
export const isSafe = ({ method }: { readonly method: string }): boolean => SAFE_METHODS.has(method.toUpperCase());

const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/**
 * Returns whether an origin has this host, for servers that do not know by which scheme they were called. An origin leaves its default port
 * out (RFC 6454 section 6.2), but some proxies add it to `Host`.
 */
export function isAtHost(text: string, host: string): boolean {
  const origin = URL.parse(text);
  if (origin === null) return false;
  const name = host.toLowerCase();
  const port = origin.port === "" ? DEFAULT_PORTS[origin.protocol] : undefined;
  return name === origin.host || (port !== undefined && name === `${origin.host}:${port}`);
}
