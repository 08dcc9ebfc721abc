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

  function search(method: string, path: Path): Match | undefined {
    const found = find(root, path, 0, method);
    return found && bind(found, path, decodeMulti);
  }

  return {
    match(method, rawPath) {
      const here = exact.get(rawPath);
      if (here !== undefined) for (const route of here) if (route.method === method) return route.match;
      const path = parsePath(rawPath);
      if (path === undefined) return noRoute;
      const found =
        (methods.has(method) ? search(method, path) : undefined) ??
        // RFC 9110 section 9.3.2: HEAD is GET without the content.
        (method === "HEAD" ? search("GET", path) : undefined) ??
        (methods.has("*") ? search("*", path) : undefined);
      if (found !== undefined) return found;
      const allow = [...methods].filter((other) => find(root, path, 0, other) !== undefined);
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

/** A request's path, cut at its slashes. */
interface Path {
  /** As they are in the request target. */
  readonly raw: readonly string[];
  /** Decoded, to be compared with literals; undefined where an escape is malformed: that equals no literal. */
  readonly decoded: readonly (string | undefined)[];
  /** Whether there is any escape. */
  readonly escaped: boolean;
  /** Whether the last segment can have a verb. */
  readonly colon: boolean;
}

/** @returns undefined if a segment is empty, as before a trailing slash: no route matches that */
function parsePath(path: string): Path | undefined {
  if (path.charCodeAt(0) !== 0x2f) return undefined;
  const raw: string[] = [];
  let start = 1;
  while (start < path.length) {
    const slash = path.indexOf("/", start);
    const end = slash === -1 ? path.length : slash;
    if (end === start) return undefined;
    raw.push(path.slice(start, end));
    start = end + 1;
  }
  if (start === path.length && start > 1) return undefined;
  const escaped = path.includes("%");
  const decoded = escaped ? raw.map(decodeOrNothing) : raw;
  return { raw, decoded, escaped, colon: path.includes(":", start - 1 - (raw.at(-1)?.length ?? 0)) };
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

function find(node: Node, path: Path, at: number, method: string): Found | undefined {
  if (at === path.raw.length)
    return endsAt(node, "", method) ?? (node.doubleStar && endsAt(node.doubleStar, "", method));
  if (path.colon && at === path.raw.length - 1) {
    const found = findVerb(node, path, at, method);
    if (found !== undefined) return found;
  }
  const literal = literalChild(node, path.decoded[at]);
  return (
    (literal && find(literal, path, at + 1, method)) ??
    (node.star && find(node.star, path, at + 1, method)) ??
    (node.doubleStar && findRest(node.doubleStar, path, at, method))
  );
}

/** `**` takes the segments up to some place, the literals after it take the rest: the most literals win. */
function findRest(node: Node, path: Path, at: number, method: string): Found | undefined {
  if (node.literals.size > 0) {
    for (let rest = at; rest < path.raw.length; rest++) {
      const found = findLiterals(node, path, rest, method);
      if (found !== undefined) return found;
    }
  }
  if (path.colon) {
    for (const [head, verb, length] of verbSplits(path)) {
      const found = head === "" ? undefined : endsAt(node, verb, method, length);
      if (found !== undefined) return found;
    }
  }
  return endsAt(node, "", method);
}

function findLiterals(node: Node, path: Path, at: number, method: string): Found | undefined {
  if (at === path.raw.length) return endsAt(node, "", method);
  if (path.colon && at === path.raw.length - 1) {
    for (const [head, verb, length] of verbSplits(path)) {
      const literal = literalChild(node, decodeOrNothing(head));
      const found = literal && endsAt(literal, verb, method, length);
      if (found !== undefined) return found;
    }
  }
  const literal = literalChild(node, path.decoded[at]);
  return literal && findLiterals(literal, path, at + 1, method);
}

/** The longest verb of a route to which the last segment, the verb taken off, leads. */
function findVerb(node: Node, path: Path, at: number, method: string): Found | undefined {
  for (const [head, verb, length] of verbSplits(path)) {
    for (const end of head === "" ? emptyHead(node, at) : nodesAfter(node, head)) {
      const found = endsAt(end, verb, method, length);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** Where a path can end whose last segment is `segment`, in order of precedence. */
function* nodesAfter(node: Node, segment: string): Generator<Node> {
  const decoded = decodeOrNothing(segment);
  for (const next of [literalChild(node, decoded), node.star]) {
    if (next === undefined) continue;
    yield next;
    if (next.doubleStar !== undefined) yield next.doubleStar;
  }
  if (node.doubleStar === undefined) return;
  const after = literalChild(node.doubleStar, decoded);
  if (after !== undefined) yield after;
  yield node.doubleStar;
}

/** `/**:verb` without any segment is `/:verb`; elsewhere a segment is never empty. */
function* emptyHead(node: Node, at: number): Generator<Node> {
  if (at === 0 && node.doubleStar !== undefined) yield node.doubleStar;
}

/** The ways to see a custom verb in the last segment, the longest verb first. `%3A` is no colon. */
function* verbSplits(path: Path): Generator<readonly [head: string, verb: string, length: number]> {
  const segment = path.raw.at(-1) ?? "";
  for (let colon = segment.indexOf(":"); colon !== -1; colon = segment.indexOf(":", colon + 1)) {
    const verb = decodeOrNothing(segment.slice(colon + 1));
    if (verb !== undefined && verb !== "") yield [segment.slice(0, colon), verb, segment.length - colon];
  }
}

function endsAt(node: Node, verb: string, method: string, verbLength = 0): Found | undefined {
  const route = node.ends.get(method)?.get(verb);
  return route && { route, verbLength };
}

function literalChild(node: Node, decoded: string | undefined): Node | undefined {
  return decoded === undefined || node.literals.size === 0 ? undefined : node.literals.get(decoded);
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

function bind(
  { route, verbLength }: Found,
  { raw: segments, escaped }: Path,
  decodeMulti: (raw: string) => string,
): Match {
  if (!escaped && route.variables.length === 0) return { kind: "route", route, bindings: noBindings };
  try {
    // Where the template is longer or shorter than the path, `**` took more or fewer segments than one.
    const stretch = segments.length - route.segments.length;
    const doubleStar = stretch === 0 ? route.segments.length : route.segments.indexOf("**");
    const bindings: Binding[] = [];
    for (const variable of route.variables) {
      const start = variable.start > doubleStar ? variable.start + stretch : variable.start;
      const end = variable.end > doubleStar ? variable.end + stretch : variable.end;
      let raw = end - start === 1 ? (segments[start] ?? "") : segments.slice(start, end).join("/");
      if (verbLength > 0 && end === segments.length) raw = raw.slice(0, -verbLength);
      const value = !escaped ? raw : variable.multi ? decodeMulti(raw) : decodeAll(raw);
      bindings.push({ field: variable.field, value });
    }
    // A wildcard that no variable binds must be well-formed too.
    if (escaped) for (const segment of segments) decodeAll(segment);
    return { kind: "route", route, bindings };
  } catch (error) {
    if (!(error instanceof MalformedEscape)) throw error;
    return { kind: "malformed", reason: error.message };
  }
}
