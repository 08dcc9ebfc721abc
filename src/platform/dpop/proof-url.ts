/** Normalizes URLs of requests for comparison. URL parsers of languages differ, so docs/reference/verifier-protocol.md has the rules. */

/** Matches a URL with scheme, host, port and path. The host is a name, an IPv4 address or an IPv6 address, and there are no credentials. */
const PARTS = /^(https?):\/\/([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]*))?(\/[^?#]*)?(?:[?#]|$)/i;
const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: "80", https: "443" };

/** Matches characters that a path must escape (RFC 3986 section 3.3). */
const UNESCAPED = /[^A-Za-z0-9._~!$&'()*+,;=:@/%-]+/g;

/**
 * Returns a URL without query and fragment, normalized by its syntax and scheme (RFC 3986 sections 6.2.2 and 6.2.3).
 * Returns undefined if it is no http(s) URL, has credentials, or a host that is not in ASCII.
 */
export function proofUrl(text: string): string | undefined {
  const [, givenScheme, host, port, path = "/"] = PARTS.exec(text) ?? [];
  if (givenScheme === undefined || host === undefined) return undefined;
  const scheme = givenScheme.toLowerCase();
  const authority = host.toLowerCase() + (port && port !== DEFAULT_PORTS[scheme] ? `:${port}` : "");
  const escaped = path
    .replace(UNESCAPED, (text) => encodeURIComponent(text.toWellFormed()))
    .replace(/%[0-9a-f]{2}/gi, normalizeEscape);
  return `${scheme}://${authority}${removeDotSegments(escaped)}`;
}

/** Decodes an escaped character if it needs no escape. Other escapes are written in upper case. */
function normalizeEscape(escaped: string): string {
  const character = String.fromCharCode(Number.parseInt(escaped.slice(1), 16));
  return /[A-Za-z0-9._~-]/.test(character) ? character : escaped.toUpperCase();
}

/** Resolves the segments `.` and `..` of an absolute path (RFC 3986 section 5.2.4). */
function removeDotSegments(path: string): string {
  if (!path.includes("/.")) return path;
  const kept: string[] = [];
  const segments = path.split("/").slice(1);
  for (const [index, segment] of segments.entries()) {
    if (segment === "..") kept.pop();
    else if (segment !== ".") kept.push(segment);
    if ((segment === "." || segment === "..") && index === segments.length - 1) kept.push("");
  }
  return `/${kept.join("/")}`;
}
