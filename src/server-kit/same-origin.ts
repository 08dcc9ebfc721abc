/** Checks whether a request comes from a page of the application itself. */

type OriginRequest = { readonly method: string; readonly headers: Pick<Headers, "get"> };

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS"]);

/** Returns whether the method of a request is safe: it changes nothing (RFC 9110 section 9.2.1). */
export const isSafe = ({ method }: Pick<OriginRequest, "method">): boolean => SAFE_METHODS.has(method.toUpperCase());

/**
 * Returns whether a request comes from a page of the application, and not from another site that makes the browser send its cookies
 * (CSRF). Fetch Metadata decides, or else `Origin`. A request with neither does not come from a browser.
 * @param origins other origins whose pages may send requests, such as `https://app.example.com`. Sibling domains, which browsers report
 * as `same-site`, are refused unless they are listed
 */
export function isSameOrigin({ headers }: OriginRequest, origins: readonly string[] = []): boolean {
  const origin = headers.get("origin");
  if (origin !== null && origins.includes(origin)) return true;
  const site = headers.get("sec-fetch-site");
  if (site !== null) return site === "same-origin" || site === "none";
  if (origin === null) return true;
  const host = headers.get("x-forwarded-host") ?? headers.get("host");
  return host !== null && isAt(URL.parse(origin), host.toLowerCase());
}

const DEFAULT_PORTS: Readonly<Record<string, string>> = { "http:": "80", "https:": "443" };

/** Returns whether an origin has this host. An origin leaves its default port out (RFC 6454 section 6.2), but some proxies add it to `Host`. */
function isAt(origin: URL | null, host: string): boolean {
  if (origin === null) return false;
  const port = origin.port === "" ? DEFAULT_PORTS[origin.protocol] : undefined;
  return host === origin.host || (port !== undefined && host === `${origin.host}:${port}`);
}
