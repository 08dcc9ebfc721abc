import type { Route } from "./model.ts";
import { decodeAll } from "./percent.ts";

/** A request's path, cut at its slashes. */
export interface Path {
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
export function parsePath(path: string): Path | undefined {
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
export class Node {
  /** By decoded literal. */
  readonly literals = new Map<string, Node>();
  star: Node | undefined;
  doubleStar: Node | undefined;
  /** The routes that end here, by HTTP method, then by decoded verb. */
  readonly ends = new Map<string, Map<string, Route>>();
}

/** Puts a route where its template leads. */
export function insert(root: Node, route: Route): void {
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

/** The end of a search. */
export interface Found {
  readonly route: Route;
  /** How many characters of the last segment are the verb, with its colon. */
  readonly verbLength: number;
}

/**
 * Finds the route of a method: at each place the literal before `*` before `**`, going back where one leads nowhere.
 */
export function find(node: Node, path: Path, at: number, method: string): Found | undefined {
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
