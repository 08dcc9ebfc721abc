/** Selects what the service needs of the headers of the browser's request. */

import { isSafe } from "../platform/net/cross-site.ts";

/** The headers of tracing, and those that the audit records about a client. */
const OF_CLIENTS = ["cookie", "user-agent", "traceparent", "x-request-id", "x-forwarded-for", "x-forwarded-proto"];
/** The headers of device binding (DBSC). */
const OF_DEVICES = ["secure-session-response", "secure-session-skipped", "sec-secure-session-id"];
const FETCH_METADATA = ["sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest"];
const PASSED_ON = [...OF_CLIENTS, ...OF_DEVICES];
/** The headers that the kit reads or passes on if it ignores device binding. */
export const READ_WITHOUT_DEVICES: readonly string[] = [...OF_CLIENTS, ...FETCH_METADATA];

/** The values of `Sec-Fetch-Dest` for the parts of a page. They need no refresh, because the request for the page has made one. */
const SUBRESOURCES = new Set(
  "audio font image manifest object script style track video worker sharedworker serviceworker".split(" "),
);

const isNavigation = (headers: Pick<Headers, "get">) => headers.get("sec-fetch-mode") === "navigate";

/** Returns whether a request may cause a refresh: it is for a page or its data, and not from a script of another site. */
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
export function headersForService(
  { method, headers }: Pick<Request, "method"> & { readonly headers: Pick<Headers, "get"> },
  address: string | undefined,
): Headers {
  const passed = new Headers();
  const site = headers.get("sec-fetch-site");
  // After a link on another site, the Fetch Metadata would make the service refuse the refresh as a cross-site request. It may also refuse
  // sibling domains (`ALLOW_SAME_SITE`).
  const isLink = isNavigation(headers) && (site === "cross-site" || (site === "same-site" && isSafe({ method })));
  for (const name of isLink ? PASSED_ON : [...PASSED_ON, ...FETCH_METADATA]) {
    const value = headers.get(name);
    if (value !== null) passed.set(name, value);
  }
  if (address) passed.append("x-forwarded-for", address);
  return passed;
}
