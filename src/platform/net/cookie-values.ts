/** Parses `Cookie` headers (RFC 6265bis section 5.7). */

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
 * Returns all values of a cookie in a `Cookie` header, in order. A browser sends one value for each domain and path for which the cookie
 * was set; a sibling domain may have planted some.
 */
export function cookieValues(header: string, name: string): readonly string[] {
  const values: string[] = [];
  let start = 0;
  // The pairs are found in place, because splitting the header would copy all of them. The next equals sign is searched for only once, so
  // that many pairs without an equals sign take linear time.
  let equals = header.indexOf("=");
  while (equals >= 0) {
    const semicolon = header.indexOf(";", start);
    const end = semicolon < 0 ? header.length : semicolon;
    if (equals < end && trimmed(header, start, equals) === name) values.push(trimmed(header, equals + 1, end));
    if (semicolon < 0) break;
    start = end + 1;
    if (equals < start) equals = header.indexOf("=", start);
  }
  return values;
}
