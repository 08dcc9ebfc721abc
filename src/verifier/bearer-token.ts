/**
 * Returns the token of an `Authorization` header with the Bearer scheme (RFC 6750 section 2.1; case does not matter in the scheme, RFC
 * 9110 section 11.1). Returns undefined if there is no such header, and an empty text if it contains no token.
 */
export function bearerToken(authorization: string | null | undefined): string | undefined {
  if (!authorization || !/^bearer\b/i.test(authorization)) return undefined;
  return /^bearer +([^\s,]+)$/i.exec(authorization)?.[1] ?? "";
}

/** Returns the token of an `Authorization` header with the DPoP scheme (RFC 9449 section 7.1) in the same way. */
export function dpopToken(authorization: string | null | undefined): string | undefined {
  if (!authorization || !/^dpop\b/i.test(authorization)) return undefined;
  return /^dpop +([^\s,]+)$/i.exec(authorization)?.[1] ?? "";
}
