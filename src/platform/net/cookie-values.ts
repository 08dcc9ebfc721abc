/** Parses `Cookie` headers (RFC 6265bis section 5.7). */

const PADDING = " \t";

/**
 * Removes SP and HTAB around a text (RFC 6265bis section 5.6). `trim()` would remove all Unicode spaces, so that `\u00a0__Host-…`, which
 * any sibling domain may set, would become this service's name.
 */
export function trimmed(text: string, start = 0, end = text.length): string {
  let from = start;
  let to = end;
  while (from < to && PADDING.includes(text.charAt(from))) from++;
  while (from < to && PADDING.includes(text.charAt(to - 1))) to--;
  return text.slice(from, to);
}

/** Returns all values of a cookie in a `Cookie` header, in order: one for each domain and path. A sibling domain may have planted some. */
export function cookieValues(header: string, name: string): readonly string[] {
  const values: string[] = [];
  let start = 0;
  // The header is not split, because that would copy it all. Each equals sign is searched for only once, so that the time is linear.
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
