/** The one reader of `Cookie` headers (RFC 6265bis section 5.7). */

/**
 * Without SP and HTAB around it (RFC 6265bis section 5.6). `trim()` removes all that Unicode calls a space, and so makes our name of
 * `\u00a0__Host-…`, which any sibling domain may set.
 */
function trimmed(text: string, start: number, end: number): string {
  let from = start;
  let to = end;
  while (from < to && isPadding(text.charCodeAt(from))) from++;
  while (from < to && isPadding(text.charCodeAt(to - 1))) to--;
  return text.slice(from, to);
}

const isPadding = (code: number) => code === 0x20 || code === 0x09;

/** All values of a cookie in a `Cookie` header, in its order: a browser has one for each scope, and a sibling domain may plant some. */
export function cookieValues(header: string, name: string): readonly string[] {
  const values: string[] = [];
  for (const pair of header.split(";")) {
    const equals = pair.indexOf("=");
    if (equals >= 0 && trimmed(pair, 0, equals) === name) values.push(trimmed(pair, equals + 1, pair.length));
  }
  return values;
}
