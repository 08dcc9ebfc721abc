/**
 * The path of a request. Each framework changes the path in its own way before it looks for the route: some decode it, ignore case or
 * a slash at the end, or resolve `..`. A path that is protected in one of these forms is protected.
 */

/**
 * The scheme and the authority of an absolute URL. Frameworks separate them from the path by grammars of their own: for `http:///account`,
 * Express takes `/account` for the path, and `new URL` takes `account` for the host; for `http://a?/account`, h3 2 takes `/account` for
 * the path, and Express takes `/`. So an authority that is empty or ends in such a way stays with the path, as in `//a?/account`.
 */
const ORIGIN = /^[a-z][a-z\d+.-]*:(?:\/\/[^/\\?#]+(?=[/\\]|$))?/i;

/** How often a path is decoded at most. Astro refuses paths that have to be decoded more than 11 times. */
const MAX_DECODINGS = 12;

/** Returns the path and the query of a request as they were sent. @param url a path, or an absolute URL */
export function requestTarget(url: string): { readonly path: string; readonly search: string } {
  // `URL.parse` would resolve `..`, which Express and Fastify leave in the path that they match.
  const [, path, search = ""] = /^((?:\/\/[^/]*)?[^?#]*)(\?[^#]*)?/.exec(url.replace(ORIGIN, "")) ?? [];
  return { path: path || "/", search };
}

/** What frameworks change in a path before they match it with their routes. Each makes some of these changes, in this order. */
const CHANGES: readonly ((path: string) => string)[] = [
  decode,
  decodeRepeatedly,
  // `decodeURI` leaves `#$&+,:;=?@/` encoded. Nuxt and React Router decode all of these but the slash.
  (path) => path.replaceAll(/%(?:2[346bc]|3[abdf]|40)/gi, decodeURIComponent),
  // Nuxt decodes the path before it separates the query, so an encoded `?` ends the path. An authority may have a query and no path.
  (path) => path.replace(/[?#].*/s, "") || "/",
  // Some frameworks call `new URL("//host/account", base)`, which takes `host` for an authority, and reads a backslash as a slash.
  (path) => path.replace(/^[/\\]{2,}[^/\\]*/, "") || "/",
  (path) => path.replaceAll("\\", "/"),
  (path) => path.replaceAll(/;[^/]*/g, ""),
  (path) => path.replaceAll(/\/{2,}/g, "/"),
  resolveDots,
  pageOfData,
  withoutSlashAtEnd,
  (path) => path.toLowerCase(),
];

/** Returns a path in all forms in which a framework may match it with its routes. For most paths this is the path alone. */
export function pathForms(path: string): readonly string[] {
  const forms = new Set([path]);
  for (const change of CHANGES) for (const form of [...forms]) forms.add(change(form));
  return [...forms];
}

/** Decodes what can be decoded, as Hono does, where `decodeURI` would refuse the whole path for one wrong octet. */
function decode(path: string): string {
  return path.replaceAll(/(?:%[0-9a-f]{2})+/gi, (octets) => {
    try {
      return decodeURI(octets);
    } catch {
      return octets.replaceAll(/%[0-7]./g, decodeURI);
    }
  });
}

/** Decodes a path until nothing is left to decode, as Astro does. Proxies in front may decode paths, too. */
function decodeRepeatedly(path: string): string {
  let decoded = path;
  for (let count = 0; count < MAX_DECODINGS; count++) {
    const next = decode(decoded);
    if (next === decoded) break;
    decoded = next;
  }
  return decoded;
}

function resolveDots(path: string): string {
  const segments: string[] = [];
  for (const segment of path.split("/").slice(1)) {
    if (segment === "..") segments.pop();
    else if (segment !== ".") segments.push(segment);
  }
  return `/${segments.join("/")}`;
}

/**
 * Returns the address of the page whose data a request is for. Scripts of frameworks fetch data from addresses beside the page:
 * `/account.data`, `/account/_.data` and `/_root.data` (React Router), `/account.rsc` and `/_next/data/<build>/account.json` (Next.js),
 * `/account/__data.json` (SvelteKit), `/account/_payload.json` (Nuxt, which accepts any character in place of the dot).
 */
function pageOfData(path: string): string {
  const page = path.replace(/(?:\/_(?:root)?)?\.(?:data|rsc)$|\/(?:__data\.|_payload.)js(?:on)?$/is, "");
  return /^\/_next\/data\/[^/]+(\/.*)\.json$/is.exec(page)?.[1] ?? (page || "/");
}

/** Removes all slashes at the end. A regular expression would take quadratic time for a path of slashes. */
export function withoutSlashAtEnd(path: string): string {
  let end = path.length;
  while (end > 1 && path[end - 1] === "/") end--;
  return path.slice(0, end);
}
