/** The token of an `Authorization: Bearer` header (RFC 6750 section 2.1; the scheme in any case, RFC 9110), if there is one. */
export function bearerOf(headers: Pick<Headers, "get">): string | undefined {
  const header = headers.get("authorization");
  if (header === null) return undefined;
  return /^Bearer +([^\s,]+)$/i.exec(header)?.[1] ?? (header === "" ? undefined : "");
}
