import { type Route, type RouteTable, routeName } from "./model.ts";
import { decodeAll, decodeExceptReserved, decodeExceptSlash, MalformedEscape } from "./percent.ts";
import { shapeOf } from "./rules.ts";

/** What a request's method and path name. */
export type Match =
  | { readonly kind: "route"; readonly route: Route; readonly bindings: readonly Binding[] }
  /** The path is known, the method is not. */
  | { readonly kind: "method_not_allowed"; readonly allow: readonly string[] }
  | { readonly kind: "no_route" }
  /** A route matches, but the path has escapes that are malformed or not UTF-8. */
  | { readonly kind: "malformed"; readonly reason: string };

/** A path variable's value, decoded. */
export interface Binding {
  /** The path of the request field, in proto names. */
  readonly field: string;
  readonly value: string;
}

/** Which escapes a variable of several segments keeps as they are written. */
export type MultiSegmentDecoding = "except-slash" | "except-reserved";

export interface Matcher {
  /**
   * Finds the route of a request.
   * @param method as in the request line: case matters
   * @param rawPath the path as it is in the request target, before any decoding, without the query
   */
  match(method: string, rawPath: string): Match;
}

const noRoute: Match = { kind: "no_route" };
const noBindings: readonly Binding[] = [];

/**
 * Makes a matcher of tables. Precedence is literal, then `*`, then `**`, segment by segment from the left, with full
 * backtracking among the routes of the request's method.
 * @throws Error if two routes match the same requests; it names both
 */
export function createMatcher(tables: Iterable<RouteTable>, decoding: MultiSegmentDecoding = "except-slash"): Matcher {
  const exact = new Map<string, { method: string; match: Match }[]>();
  const root = new Node();
  const methods = new Set<string>();
  const owners = new Map<string, string>();
  for (const { service, routes } of tables) {
    for (const route of routes) {
      const owner = `${routeName(route)} of ${service.typeName}.${service.method[route.rpc]?.name ?? route.rpc}`;
      const other = owners.get(shapeOf(route));
      if (other !== undefined) throw new Error(`${owner} is the same route as ${other}`);
      owners.set(shapeOf(route), owner);
      methods.add(route.method);
      insert(root, route);
      const path = exactPath(route);
      if (path === undefined) continue;
      const here = exact.get(path) ?? [];
      exact.set(path, here);
      here.push({ method: route.method, match: { kind: "route", route, bindings: noBindings } });
    }
  }
  const decodeMulti = decoding === "except-slash" ? decodeExceptSlash : decodeExceptReserved;

  function search(method: string, segments: readonly string[]): Match | undefined {
    const found = find(root, segments, 0, method);
    return found && bind(found, segments, decodeMulti);
  }

  return {
    match(method, rawPath) {
      const here = exact.get(rawPath);
      if (here !== undefined) for (const route of here) if (route.method === method) return route.match;
      const segments = split(rawPath);
      if (segments === undefined) return noRoute;
      const found =
        (methods.has(method) ? search(method, segments) : undefined) ??
        // RFC 9110 section 9.3.2: HEAD is GET without the content.
        (method === "HEAD" ? search("GET", segments) : undefined) ??
        (methods.has("*") ? search("*", segments) : undefined);
      if (found !== undefined) return found;
      const allow = [...methods].filter((other) => find(root, segments, 0, other) !== undefined);
      if (allow.length === 0) return noRoute;
      if (allow.includes("GET") && !allow.includes("HEAD")) allow.push("HEAD");
      if (!allow.includes("OPTIONS")) allow.push("OPTIONS");
      return { kind: "method_not_allowed", allow: allow.sort() };
    },
  };
}

/** The one raw path that a route without variables and escapes matches. */
function exactPath(route: Route): string | undefined {
  const path = `/${route.segments.join("/")}${route.verb === "" ? "" : `:${route.verb}`}`;
  return /[*%]/.test(path) ? undefined : path;
}

/** The segments of a path, raw; undefined if one is empty, as before a trailing slash: no route matches that. */
function split(rawPath: string): string[] | undefined {
  if (rawPath.charCodeAt(0) !== 0x2f) return undefined;
  if (rawPath.length === 1) return [];
  const segments = rawPath.slice(1).split("/");
  return segments.includes("") ? undefined : segments;
}

/** A place in the tree of templates: what may come after the segments that lead here. */
class Node {
  /** By decoded literal. */
  readonly literals = new Map<string, Node>();
  star: Node | undefined;
  doubleStar: Node | undefined;
  /** The routes that end here, by HTTP method, then by decoded verb. */
  readonly ends = new Map<string, Map<string, Route>>();
}

function insert(root: Node, route: Route): void {
  let node = root;
  for (const segment of route.segments) {
    if (segment === "*") node = node.star ??= new Node();
    else if (segment === "**") node = node.doubleStar ??= new Node();
    else {
      const literal = decodeAll(segment);
      const next: Node = node.literals.get(literal) ?? new Node();
      node.literals.set(literal, next);
      node = next;
    }
  }
  const verbs = node.ends.get(route.method) ?? new Map<string, Route>();
  node.ends.set(route.method, verbs);
  verbs.set(decodeAll(route.verb), route);
}

interface Found {
  readonly route: Route;
  /** How many characters of the last segment are the verb, with its colon. */
  readonly verbLength: number;
}

function find(node: Node, segments: readonly string[], at: number, method: string): Found | undefined {
  const segment = segments[at];
  if (segment === undefined)
    return endsAt(node, "", method) ?? (node.doubleStar && endsAt(node.doubleStar, "", method));
  if (at === segments.length - 1) {
    const found = findVerb(node, segment, at, method);
    if (found !== undefined) return found;
  }
  const literal = literalChild(node, segment);
  return (
    (literal && find(literal, segments, at + 1, method)) ??
    (node.star && find(node.star, segments, at + 1, method)) ??
    (node.doubleStar && findRest(node.doubleStar, segments, at, method))
  );
}

/** `**` takes the segments up to some place, the literals after it take the rest: the most literals win. */
function findRest(node: Node, segments: readonly string[], at: number, method: string): Found | undefined {
  if (node.literals.size > 0) {
    for (let rest = at; rest < segments.length; rest++) {
      const found = findLiterals(node, segments, rest, method);
      if (found !== undefined) return found;
    }
  }
  for (const [head, verb] of verbSplits(segments.at(-1) ?? "")) {
    const found = head === "" ? undefined : endsAt(node, verb, method, head, segments.at(-1));
    if (found !== undefined) return found;
  }
  return endsAt(node, "", method);
}

function findLiterals(node: Node, segments: readonly string[], at: number, method: string): Found | undefined {
  const segment = segments[at];
  if (segment === undefined) return endsAt(node, "", method);
  if (at === segments.length - 1) {
    for (const [head, verb] of verbSplits(segment)) {
      const literal = literalChild(node, head);
      const found = literal && endsAt(literal, verb, method, head, segment);
      if (found !== undefined) return found;
    }
  }
  const literal = literalChild(node, segment);
  return literal && findLiterals(literal, segments, at + 1, method);
}

/** The longest verb that a route has which the last segment, the verb taken off, leads to. */
function findVerb(node: Node, segment: string, at: number, method: string): Found | undefined {
  for (const [head, verb] of verbSplits(segment)) {
    for (const end of head === "" ? emptyHead(node, at) : nodesAfter(node, head)) {
      const found = endsAt(end, verb, method, head, segment);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** Where a path can end whose last segment is `segment`, in order of precedence. */
function* nodesAfter(node: Node, segment: string): Generator<Node> {
  for (const next of [literalChild(node, segment), node.star]) {
    if (next === undefined) continue;
    yield next;
    if (next.doubleStar !== undefined) yield next.doubleStar;
  }
  if (node.doubleStar === undefined) return;
  const after = literalChild(node.doubleStar, segment);
  if (after !== undefined) yield after;
  yield node.doubleStar;
}

/** `/**:verb` without any segment is `/:verb`; elsewhere a segment is never empty. */
function* emptyHead(node: Node, at: number): Generator<Node> {
  if (at === 0 && node.doubleStar !== undefined) yield node.doubleStar;
}

/** The ways to see a custom verb in the last segment, the longest verb first. `%3A` is no colon. */
function* verbSplits(segment: string): Generator<readonly [head: string, verb: string]> {
  for (let colon = segment.indexOf(":"); colon !== -1; colon = segment.indexOf(":", colon + 1)) {
    const verb = decodeOrNothing(segment.slice(colon + 1));
    if (verb !== undefined && verb !== "") yield [segment.slice(0, colon), verb];
  }
}

function endsAt(node: Node, verb: string, method: string, head = "", segment = ""): Found | undefined {
  const route = node.ends.get(method)?.get(verb);
  return route && { route, verbLength: segment.length - head.length };
}

function literalChild(node: Node, raw: string): Node | undefined {
  if (node.literals.size === 0) return undefined;
  const literal = decodeOrNothing(raw);
  return literal === undefined ? undefined : node.literals.get(literal);
}

/** For comparisons: what is malformed equals no literal. */
function decodeOrNothing(raw: string): string | undefined {
  if (!raw.includes("%")) return raw;
  try {
    return decodeAll(raw);
  } catch {
    return undefined;
  }
}

function bind(found: Found, segments: readonly string[], decodeMulti: (raw: string) => string): Match {
  const { route, verbLength } = found;
  try {
    // Where the template is longer or shorter than the path, `**` took more or fewer segments than one.
    const stretch = segments.length - route.segments.length;
    const doubleStar = stretch === 0 ? route.segments.length : route.segments.indexOf("**");
    const last = segments.length - 1;
    const bindings: Binding[] = [];
    for (const variable of route.variables) {
      const start = variable.start > doubleStar ? variable.start + stretch : variable.start;
      const end = variable.end > doubleStar ? variable.end + stretch : variable.end;
      let raw = end - start === 1 ? (segments[start] ?? "") : segments.slice(start, end).join("/");
      if (end > last && verbLength > 0) raw = raw.slice(0, -verbLength);
      bindings.push({ field: variable.field, value: variable.multi ? decodeMulti(raw) : decodeAll(raw) });
    }
    // A wildcard that no variable binds must be well-formed too.
    for (const segment of segments) if (segment.includes("%")) decodeAll(segment);
    return { kind: "route", route, bindings };
  } catch (error) {
    if (!(error instanceof MalformedEscape)) throw error;
    return { kind: "malformed", reason: error.message };
  }
}
