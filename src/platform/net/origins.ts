/** Matches web origins against a list: exact ones, all below a domain (`https://*.example.com`), and any port (`http://localhost:*`). */

/** @returns whether an origin, as a browser sends it, is in the list */
export function matchOrigins(patterns: readonly string[]): (origin: string) => boolean {
  const exact = new Set(patterns.filter((pattern) => !pattern.includes("*")));
  const expressions = patterns.filter((pattern) => pattern.includes("*")).map(expressionOf);
  return (origin) => exact.has(origin) || expressions.some((expression) => expression.test(origin));
}

/** A star in place of a port stands for none, too, because browsers leave the default port out. */
function expressionOf(pattern: string): RegExp {
  const text = pattern
    .replace(/[.[\]]/g, "\\$&")
    .replace("://*\\.", "://(?:[a-z0-9_-]+\\.)+")
    .replace(/:\*$/, "(?::\\d{1,5})?");
  return new RegExp(`^${text}$`);
}
