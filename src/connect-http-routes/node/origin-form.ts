/**
 * Returns the path and query of a request target, not decoded. Servers must accept the absolute form too (RFC 9112 section 3.2.2).
 * Non-ASCII bytes, which are invalid in a target, are percent-encoded.
 */
export function originForm(url: string): string {
  const target = url.charCodeAt(0) === 0x2f ? url : url.replace(/^https?:\/\/[^/?#]*\/?/i, "/");
  return /^[\0-\x7f]*$/.test(target) ? target : target.replace(/[^\0-\x7f]/gu, escapeByte);
}

function escapeByte(character: string): string {
  // Node decodes HTTP/1 targets as Latin-1, so each character is one byte.
  const code = character.charCodeAt(0);
  return code <= 0xff ? `%${code.toString(16)}` : encodeURIComponent(character.toWellFormed());
}
