/** Selects the headers of the browser's request that the service needs. */

/** The headers of device binding (DBSC), of tracing, and those that the audit records of a client. */
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

/** A browser loads these into a page. None of them needs a refresh, since the page itself has made one. */
const SUBRESOURCES = new Set(
  "audio font image manifest object script style track video worker sharedworker serviceworker".split(" "),
);

const isNavigation = (headers: Pick<Headers, "get">) => headers.get("sec-fetch-mode") === "navigate";

/** Returns whether a request is for a page or data of the application rather than for a file, and not from another site's script. */
export function mayRefresh(headers: Pick<Headers, "get">): boolean {
  if (SUBRESOURCES.has(headers.get("sec-fetch-dest") ?? "")) return false;
  return headers.get("sec-fetch-site") !== "cross-site" || isNavigation(headers);
}

/** @param address the network address from which this server received the request */
export function headersForService(headers: Pick<Headers, "get">, address: string | undefined): Headers {
  const passed = new Headers();
  // A link on another site leads here by right. Its refresh is this server's own request.
  const isLink = isNavigation(headers) && headers.get("sec-fetch-site") === "cross-site";
  for (const name of isLink ? PASSED_ON : [...PASSED_ON, ...FETCH_METADATA]) {
    const value = headers.get(name);
    if (value !== null) passed.set(name, value);
  }
  if (address) passed.append("x-forwarded-for", address);
  return passed;
}
