/** Parses `Cookie` headers (RFC 6265bis section 5.7). All code here uses this parser. */

/**
 * Removes SP and HTAB around a text (RFC 6265bis section 5.6). `trim()` would remove everything that Unicode calls a space. Then
 * `\u00a0__Host-…`, which any sibling domain may set, would become this service's name.
 */
export function trimmed(text: string, start = 0, end = text.length): string {
  let from = start;
  let to = end;
  while (from < to && isPadding(text.charCodeAt(from))) from++;
  while (from < to && isPadding(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}

const isPadding = (code: number) => code === 0x20 || code === 0x09;

/**
 * Returns all values of a cookie in a `Cookie` header, in order. A browser sends one for each scope, and a sibling domain may have
 * planted some.
 */
export function cookieValues(header: string, name: string): readonly string[] {
  const values: string[] = [];
  for (const pair of header.split(";")) {
    const equals = pair.indexOf("=");
    if (equals >= 0 && trimmed(pair, 0, equals) === name) values.push(trimmed(pair, equals + 1, pair.length));
  }
  return values;
}
