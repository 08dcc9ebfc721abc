/**
 * The token of an `Authorization: Bearer` header (RFC 6750 section 2.1; the scheme in any case, RFC 9110
 * section 11.1): undefined when there is no such header, empty when it holds no token.
 */
export function bearerOf(headers: { get(name: "authorization"): string | null }): string | undefined {
  const header = headers.get("authorization");
  if (header === null || !/^bearer\b/i.test(header)) return undefined;
  return /^bearer +([^\s,]+)$/i.exec(header)?.[1] ?? "";
}
