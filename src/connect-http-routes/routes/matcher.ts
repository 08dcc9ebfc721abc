import { type MultiSegmentDecoding, type Route, type RouteTable, routeName } from "./model.ts";
import { type Found, type Path, PathTree, parsePath } from "./path-tree.ts";
import { decodeAll, decodeSegments, MalformedEscape } from "./percent.ts";
import { shapeOf } from "./rules.ts";

/** The result of looking up a method and a path. */
export type Match =
  | { readonly kind: "route"; readonly route: Route; readonly bindings: readonly Binding[] }
  /** The path has routes, but none for this method. */
  | { readonly kind: "method_not_allowed"; readonly allow: readonly string[] }
  | { readonly kind: "no_route" }
  /** A route matches, but the path contains escapes that are malformed or not UTF-8. */
  | { readonly kind: "malformed"; readonly reason: string };

/** A path variable's value, decoded. */
export interface Binding {
  /** The path of the request field, in proto names. */
  readonly field: string;
  readonly value: string;
}

export interface Matcher {
  /**
   * Finds the route of a request.
   * @param method as in the request line, case-sensitive
   * @param rawPath the undecoded path of the request target, without the query
   */
  match(method: string, rawPath: string): Match;
}

const SLASH = 0x2f;
const NO_ROUTE: Match = { kind: "no_route" };
/** The methods listed in `Allow` for a route of every method. */
const USUAL_METHODS = ["DELETE", "GET", "HEAD", "PATCH", "POST", "PUT"];
const NO_BINDINGS: readonly Binding[] = [];

/**
 * Makes a matcher of tables. Precedence is literal, then `*`, then `**`, segment by segment from the left, with full backtracking among
 * the routes of the request's method.
 * @throws Error if two routes match the same requests; its text names both
 */
export function createMatcher(tables: Iterable<RouteTable>, decoding: MultiSegmentDecoding = "except-slash"): Matcher {
  const exact = new Map<string, { method: string; match: Match }[]>();
  const trees = new Map<string, PathTree>();
  const owners = new Map<string, string>();
  const decodings = new Map<Route, MultiSegmentDecoding>();
  for (const { service, routes, multiSegmentDecoding } of tables) {
    for (const route of routes) {
      if (multiSegmentDecoding !== undefined) decodings.set(route, multiSegmentDecoding);
      const owner = `${routeName(route)} of ${service.typeName}.${service.method[route.rpc]?.name ?? route.rpc}`;
      const other = owners.get(shapeOf(route));
      if (other !== undefined) throw new Error(`${owner} is the same route as ${other}`);
      owners.set(shapeOf(route), owner);
      const tree = trees.get(route.method) ?? new PathTree();
      trees.set(route.method, tree);
      tree.insert(route);
      const path = exactPath(route);
      if (path === undefined) continue;
      const here = exact.get(path) ?? [];
      exact.set(path, here);
      here.push({ method: route.method, match: { kind: "route", route, bindings: literalBindings(route) } });
    }
  }
  const decodeMulti = (raw: string, route: Route) => decodeSegments(raw, decodings.get(route) ?? decoding);

  const methods = [...trees.keys()];

  function search(method: string, path: Path): Match | undefined {
    const found = trees.get(method)?.find(path);
    return found && bind(found, path, decodeMulti);
  }

  return {
    match(method, rawPath) {
      const here = exact.get(rawPath);
      if (here !== undefined) for (const route of here) if (route.method === method) return route.match;
      if (rawPath.charCodeAt(0) !== SLASH) return NO_ROUTE;
      const path = parsePath(rawPath);
      if (path === undefined) return NO_ROUTE;
      const found =
        search(method, path) ??
        // RFC 9110 section 9.3.2: HEAD is GET without content.
        (method === "HEAD" ? search("GET", path) : undefined) ??
        // A route for every method must not take OPTIONS: a CORS preflight must not invoke the RPC.
        (method === "OPTIONS" ? undefined : search("*", path));
      if (found !== undefined) return found;
      // The routes of the request's own method were searched above.
      const others = methods.filter((other) => other !== method && trees.get(other)?.find(path) !== undefined);
      if (others.length === 0) return NO_ROUTE;
      const allow = new Set(others);
      if (allow.delete("*")) for (const every of USUAL_METHODS) allow.add(every);
      if (allow.has("GET")) allow.add("HEAD");
      return { kind: "method_not_allowed", allow: [...allow.add("OPTIONS")].sort() };
    },
  };
}

/** Returns the only raw path that a route without wildcards and escapes matches. */
function exactPath(route: Route): string | undefined {
  const path = `/${route.segments.join("/")}${route.verb === "" ? "" : `:${route.verb}`}`;
  return /[*%]/.test(path) ? undefined : path;
}

/** Returns the bindings of a route without wildcards, whose variables consist of literals (`{name=operations}`). */
function literalBindings({ segments, variables }: Route): readonly Binding[] {
  if (variables.length === 0) return NO_BINDINGS;
  return variables.map(({ field, start, end }) => ({ field, value: segments.slice(start, end).join("/") }));
}

function bind(
  { route, verbLength }: Found,
  { raw: segments, escaped }: Path,
  decodeMulti: (raw: string, route: Route) => string,
): Match {
  if (!escaped && route.variables.length === 0) return { kind: "route", route, bindings: NO_BINDINGS };
  try {
    // `**` matched `stretch + 1` segments; `stretch` is -1 if it matched none.
    const stretch = segments.length - route.segments.length;
    const doubleStar = stretch === 0 ? route.segments.length : route.segments.indexOf("**");
    const bindings: Binding[] = [];
    for (const variable of route.variables) {
      const start = variable.start > doubleStar ? variable.start + stretch : variable.start;
      const end = variable.end > doubleStar ? variable.end + stretch : variable.end;
      let raw = end - start === 1 ? (segments[start] ?? "") : segments.slice(start, end).join("/");
      if (verbLength > 0 && end === segments.length) raw = raw.slice(0, -verbLength);
      const value = !escaped ? raw : variable.multi ? decodeMulti(raw, route) : decodeAll(raw);
      bindings.push({ field: variable.field, value });
    }
    // Segments that match wildcards outside variables must have well-formed escapes too; `decodeAll` throws if they do not.
    if (escaped) for (const segment of segments) decodeAll(segment);
    return { kind: "route", route, bindings };
  } catch (error) {
    if (!(error instanceof MalformedEscape)) throw error;
    return { kind: "malformed", reason: error.message };
  }
}
