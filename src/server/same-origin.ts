/** Checks whether a request comes from a page of the application itself. */
import { crossSiteFault, isAtHost } from "../platform/net/cross-site.ts";

export { isSafe } from "../platform/net/cross-site.ts";

type OriginRequest = { readonly method: string; readonly headers: Pick<Headers, "get"> };

/**
 * Returns whether a request comes from a page of the application, and not from another site that makes the browser send its cookies
 * (CSRF). Fetch Metadata decides, or else `Origin`. A request with neither does not come from a browser.
 * @param origins other origins whose pages may send requests, such as `https://app.example.com`. Sibling domains, which browsers report
 * as `same-site`, are refused unless they are listed
 */
export function isSameOrigin({ headers }: OriginRequest, origins: readonly string[] = []): boolean {
  const sender = { site: headers.get("sec-fetch-site"), origin: headers.get("origin") };
  const isAllowed = (origin: string) => origins.some((one) => isOrigin(one, origin));
  const rules = { isAllowed, allowSameSite: false, allowCrossSite: true };
  // Proxies append to a list, which begins with the host that the browser called. Scripts of other sites cannot send this header.
  const [host] = headers.get("x-forwarded-host")?.split(/[\t ]*,/) ?? [headers.get("host")];
  return crossSiteFault(sender, (origin) => typeof host === "string" && isAtHost(origin, host), rules) === undefined;
}

/** Returns whether a text is an origin as browsers send it, or the same one in another spelling, such as with a slash at its end. */
const isOrigin = (text: string, origin: string) =>
  text === origin || (origin !== "null" && URL.parse(text)?.origin === origin);
