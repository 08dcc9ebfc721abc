import { crossSiteFault, OWN_PAGES_ALONE } from "../../../platform/net/cross-site.ts";

/**
 * Checks whether a request comes from the console's own page, in addition to SameSite=Strict. Only scripts of the same origin can set
 * the header `x-session-console`, since the admin API allows no other origin (CORS). Browsers also report where a request comes from.
 */
export function isFromConsole(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  ownOrigin: string | null,
): boolean {
  if (headers["x-session-console"] !== "1") return false;
  const text = (name: string) => headers[name]?.toString() ?? null;
  const sender = { site: text("sec-fetch-site"), origin: text("origin") };
  return crossSiteFault(sender, (origin) => origin === ownOrigin, OWN_PAGES_ALONE) === undefined;
}
