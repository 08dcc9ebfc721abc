/**
 * Returns a function that removes a prefix from raw paths, and returns undefined for paths that are not below it. The prefix itself becomes
 * `/`. Paths are compared as they were sent, without decoding, as Connect's adapters do.
 * @throws TypeError for a prefix that no path can have
 */
export function createPathPrefix(prefix: string): (rawPath: string) => string | undefined {
  requirePathPrefix(prefix);
  return (rawPath) => {
    if (!rawPath.startsWith(prefix)) return undefined;
    if (rawPath.length === prefix.length) return "/";
    return rawPath[prefix.length] === "/" ? rawPath.slice(prefix.length) : undefined;
  };
}

/** @throws TypeError for a prefix that no path can have */
export function requirePathPrefix(prefix: string): void {
  if (/^(\/[^/?#]+)+$/.test(prefix)) return;
  throw new TypeError(`requestPathPrefix must start with / and not end with it, such as "/api": ${prefix}`);
}
