import { createMatcher } from "./matcher.ts";
import type { RouteTable } from "./model.ts";

/** The header that names another method. */
export const METHOD_OVERRIDE = "x-http-method-override";

/** Returns the method that a request is treated as. */
export type MethodOverride = (method: string, header: string | null | undefined, rawPath: string) => string;

/**
 * Returns a function that replaces the method of a POST by that of its `X-HTTP-Method-Override`, if the path has a route in a table that
 * allows this. Returns undefined if no table allows it. Only a POST can be overridden, because a GET must stay safe. HEAD is ignored: a
 * response to HEAD has headers that announce content, and a client that sent a POST would wait for that content.
 */
export function createMethodOverride(tables: readonly RouteTable[], byDefault = false): MethodOverride | undefined {
  const allowing = tables.filter(({ methodOverride = byDefault }) => methodOverride);
  if (allowing.length === 0) return undefined;
  const matcher = createMatcher(allowing);
  return (method, header, rawPath) => {
    if (method !== "POST" || !header || header === "HEAD") return method;
    return matcher.match(header, rawPath).kind === "no_route" ? method : header;
  };
}
