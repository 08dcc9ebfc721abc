/** Reads and builds `Cookie` and `Set-Cookie` header fields (RFC 6265bis). */
import { cookieValues, trimmed } from "../platform/net/cookie-values.ts";

/** Returns the parts before and after a separator, without SP and HTAB around them. */
function splitPair(pair: string): readonly [name: string, value: string] {
  const equals = pair.indexOf("=");
  return equals < 0 ? ["", trimmed(pair)] : [trimmed(pair, 0, equals), trimmed(pair, equals + 1)];
}

/** Returns the distinct values of a cookie. There are several if the cookie was set for several paths or domains. */
export function distinctValues(header: string | null, name: string): readonly string[] {
  return [...new Set(cookieValues(header ?? "", name))].filter((value) => value !== "");
}

/**
 * Returns the distinct values of a cookie by its name with and without a prefix such as `__Host-`. The service reads both while a
 * deployment moves to a prefixed name (`COOKIE_MIGRATE_UNTIL`).
 */
export function valuesForService(header: string | null, name: string): readonly string[] {
  const names = new Set([name, name.replace(/^__(?:host|secure)-/i, "")]);
  return [...names].flatMap((each) => distinctValues(header, each));
}

/** Returns the `Cookie` header that the browser would send after receiving these `Set-Cookie` lines. */
export function withSetCookies(header: string | null, setCookies: readonly string[]): string {
  const changes = setCookies.map((line) => {
    const [pair = "", ...attributes] = line.split(";");
    return { pair: splitPair(pair), isRemoval: attributes.some((one) => /^\s*max-age=(0|-\d+)\s*$/i.test(one)) };
  });
  const changed = new Set(changes.map(({ pair: [name] }) => name));
  const kept = (header ?? "")
    .split(";")
    .map(splitPair)
    .filter(([name, value]) => name + value && !changed.has(name));
  // A cookie may be set in one scope and removed from others. It then counts as set.
  const set = new Map(changes.filter(({ isRemoval }) => !isRemoval).map(({ pair }) => pair));
  return [...kept, ...set].map(([name, value]) => (name ? `${name}=${value}` : value)).join("; ");
}
