/** Selects the headers of the browser's request that the service needs. */

/** The headers of device binding (DBSC), of tracing, and those that the audit records about a client. */
const PASSED_ON = [
  "cookie",
  "user-agent",
  "traceparent",
  "x-request-id",
  "x-forwarded-for",
  "x-forwarded-proto",
  "secure-session-response",
  "secure-session-skipped",
  "sec-secure-session-id",
];
const FETCH_METADATA = ["sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"];

/**
 * The destinations of requests that a browser makes to load parts of a page. None of them needs a refresh, because the page itself has
 * made one.
 */
const SUBRESOURCES = new Set(
  "audio font image manifest object script style track video worker sharedworker serviceworker".split(" "),
);

const isNavigation = (headers: Pick<Headers, "get">) => headers.get("sec-fetch-mode") === "navigate";

/**
 * Returns whether a request may cause a refresh: it is for a page or for data of the application rather than for a file, and does not
 * come from a script of another site.
 */
export function mayRefresh(headers: Pick<Headers, "get">): boolean {
  if (SUBRESOURCES.has(headers.get("sec-fetch-dest") ?? "")) return false;
  return headers.get("sec-fetch-site") !== "cross-site" || isNavigation(headers);
}

/** Returns the address of a client, or undefined where a framework throws an error because it knows none. */
export function knownAddress(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Returns the headers for the request to the service. @param address the network address from which this server received the request */
export function headersForService(headers: Pick<Headers, "get">, address: string | undefined): Headers {
  const passed = new Headers();
  // A link on another site may lead to this page. The service must not take the refresh for a request of that site: this server makes it
  // itself. So the Fetch Metadata are left out.
  const isLink = isNavigation(headers) && headers.get("sec-fetch-site") === "cross-site";
  for (const name of isLink ? PASSED_ON : [...PASSED_ON, ...FETCH_METADATA]) {
    const value = headers.get(name);
    if (value !== null) passed.set(name, value);
  }
  if (address) passed.append("x-forwarded-for", address);
  return passed;
}
