/**
 * Returns the token of an `Authorization` header with the Bearer scheme (RFC 6750 section 2.1; the scheme in any case, RFC 9110 section
 * 11.1). Undefined if there is no such header, empty if it holds no token.
 */
export function bearerToken(authorization: string | null | undefined): string | undefined {
  if (!authorization || !/^bearer\b/i.test(authorization)) return undefined;
  return /^bearer +([^\s,]+)$/i.exec(authorization)?.[1] ?? "";
}
