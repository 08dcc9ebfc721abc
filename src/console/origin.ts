/**
 * Whether a request comes from the console's own page. Beside SameSite=Strict: the header can be set by scripts of the own
 * origin alone, since the admin API allows no other (CORS), and browsers report where a request comes from.
 */
export function isFromConsole(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  ownOrigin: string | null,
): boolean {
  if (headers["x-session-console"] !== "1") return false;
  const site = headers["sec-fetch-site"];
  if (site !== undefined && site !== "same-origin") return false;
  const { origin } = headers;
  return origin === undefined || origin === ownOrigin;
}
