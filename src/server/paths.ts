/**
 * The path of a request in all its readings. Each framework changes the path in its own way before it looks for the route or the file: some
 * decode it, ignore case or a slash at the end, or resolve `..`. What a path may lead to is therefore decided for every reading.
 */

/**
 * The scheme and the authority of an absolute URL. Frameworks separate them from the path by grammars of their own: for `http:///account`,
 * Express takes `/account` for the path, and `new URL` takes `account` for the host; for `http://a?/account` and `http://a%2faccount`, h3 2
 * and servers of files take `a` for the host, and `new URL` throws or finds no path. So an authority that is empty or has characters that
 * no host has stays with the path, as in `//a?/account`.
 */
const ORIGIN = /^[a-z][a-z\d+.-]*:(?:\/\/[\w.:@[\]-]+(?=[/\\]|$))?/i;

/**
 * How many readings a path has at most, and how many characters they have together. This bounds the work for paths that are made to have
 * many. Paths of pages have fewer than 40.
 */
const MAX_READINGS = 128;
const MAX_CHARACTERS = 1 << 15;

/** Returns the path and the query of a request as they were sent. @param url a path, or an absolute URL */
export function requestTarget(url: string): { readonly path: string; readonly search: string } {
  // `URL.parse` would resolve `..`, which Express and Fastify leave in the path that they match.
  const [, path, search = ""] = /^((?:\/\/[^/]*)?[^?#]*)(\?[^#]*)?/.exec(url.replace(ORIGIN, "")) ?? [];
  return { path: path || "/", search };
}

/** What frameworks change in a path before they match it. Each makes some of these changes, in an order of its own. */
const CHANGES: readonly ((path: string) => string)[] = [
  decode,
  // `decodeURI` leaves `#$&+,:;=?@/` encoded. Nuxt and React Router decode all of these but the slash.
  (path) => path.replaceAll(/%(?:2[346bc]|3[abdf]|40)/gi, decodeURIComponent),
  // Servers of files decode the slash, too.
  (path) => path.replaceAll(/%2f/gi, "/"),
  (path) => path.replaceAll("\\", "/"),
  // Nuxt decodes the path before it separates the query, so an encoded `?` ends the path. An authority may have a query and no path.
  (path) => path.replace(/[?#].*/s, "") || "/",
  // Some frameworks call `new URL("//host/account", base)`, which takes `host` for an authority.
  (path) => path.replace(/^[/\\]{2,}[^/\\]*/, "") || "/",
  // Others end the authority at the first character that no host has.
  (path) => path.replace(/^[/\\]{2,}[\w.:@[\]-]*/, "/"),
  // `new URL` drops these characters, wherever they are.
  (path) => path.replaceAll(/[\t\r\n]/g, ""),
  // Parameters of a segment end with the segment. In Fastify with `useSemicolonDelimiter`, a semicolon begins the query.
  (path) => path.replaceAll(/;[^/]*/g, ""),
  (path) => path.replace(/;.*/s, "") || "/",
  (path) => path.replaceAll(/\/{2,}/g, "/"),
  resolveDots,
  withoutSuffix,
  withoutSlashAtEnd,
  (path) => path.toLowerCase(),
];

/**
 * Returns every reading of a path: as it was sent, and with the changes that frameworks make, in every order, until nothing changes. A
 * plain path has one. Returns undefined if the path is made to have more readings than the address of any page.
 */
export function pathReadings(path: string): readonly string[] | undefined {
  const readings = new Set([path]);
  let characters = path.length;
  // The loop also visits the readings that are added to the set while it runs.
  for (const reading of readings) {
    for (const change of CHANGES) {
      const changed = change(reading);
      if (readings.has(changed)) continue;
      characters += changed.length;
      if (characters > MAX_CHARACTERS || readings.size === MAX_READINGS) return undefined;
      readings.add(changed);
    }
  }
  return [...readings];
}

/** Returns whether a path is UTF-8 with each `%` before two hexadecimal digits (RFC 3986 section 2.1). */
export function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

/** Decodes what can be decoded: a path that has been decoded may have a `%` of its own. */
function decode(path: string): string {
  return path.replaceAll(/(?:%[0-9a-f]{2})+/gi, (octets) => {
    try {
      return decodeURI(octets);
    } catch {
      return octets.replaceAll(/%[0-7]./g, decodeURI);
    }
  });
}

/** Resolves `.` and `..`. Their octets may be encoded (WHATWG URL, "double-dot URL path segment"). */
function resolveDots(path: string): string {
  const segments: string[] = [];
  for (const segment of path.split("/").slice(1)) {
    const plain = segment.replaceAll(/%2e/gi, ".");
    if (plain === "..") segments.pop();
    else if (plain !== ".") segments.push(segment);
  }
  return `/${segments.join("/")}`;
}

/**
 * Returns the address of the page to which a suffix belongs. Astro and servers of files respond to `/account.html` and
 * `/account/index.html` with the page `/account`. Scripts of frameworks fetch data from addresses beside the page: `/account.data`,
 * `/account/_.data` and `/_root.data` (React Router), `/account.rsc`, `/account.segments/_tree.segment.rsc` and
 * `/_next/data/<build>/account.json` (Next.js), `/account/__data.json` (SvelteKit), `/account/_payload.json` (Nuxt, which accepts any
 * character in place of the dot).
 */
function withoutSuffix(path: string): string {
  const page = path
    .replace(/(?:\.segments\/[^.]*\.segment)?\.rsc$|(?:\/_(?:root)?)?\.data$/i, "")
    .replace(/\/(?:__data\.|_payload.)js(?:on)?$|\/index\.html?$|\.(?:html?|json)$/is, "");
  return /^\/_next\/data\/[^/]+(\/.*)$/is.exec(page)?.[1] ?? (page || "/");
}

/** Removes all slashes at the end. A regular expression would take quadratic time for a path of slashes. */
export function withoutSlashAtEnd(path: string): string {
  let end = path.length;
  while (end > 1 && path[end - 1] === "/") end--;
  return path.slice(0, end);
}
