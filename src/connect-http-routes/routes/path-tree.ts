import type { Route } from "./model.ts";
import { decodeAll } from "./percent.ts";

/** A request path, split at its slashes. */
export interface Path {
  /** The segments as in the request target. */
  readonly raw: readonly string[];
  /** The decoded segments, compared with literals; undefined where an escape is malformed (it matches no literal). */
  readonly decoded: readonly (string | undefined)[];
  /** Whether the path contains percent-escapes. */
  readonly escaped: boolean;
  /** Whether the last segment contains a colon, so that it may end with a custom verb, as in `/v1/book:cancel`. */
  readonly colon: boolean;
}

/** Splits a path; undefined if a segment is empty (as after a trailing slash), which no route matches. */
export function parsePath(path: string): Path | undefined {
  const raw: string[] = [];
  const { length } = path;
  let [start, last] = [1, 1];
  while (start < length) {
    const slash = path.indexOf("/", start);
    const end = slash === -1 ? length : slash;
    if (end === start) return undefined;
    raw.push(path.slice(start, end));
    last = start;
    start = end + 1;
  }
  if (start === length && start > 1) return undefined;
  const escaped = path.includes("%");
  const decoded = escaped ? raw.map(decodeOrNothing) : raw;
  return { raw, decoded, escaped, colon: path.indexOf(":", last) !== -1 };
}

/** A node of the template tree: it holds the segments that may follow. */
class Node {
  /** The next nodes, by decoded literal. */
  readonly literals = new Map<string, Node>();
  star: Node | undefined;
  doubleStar: Node | undefined;
  /** The routes that end at this node: one without a verb, and others by their decoded verb. */
  end: Route | undefined;
  readonly verbs = new Map<string, Route>();
}

export interface Found {
  readonly route: Route;
  /** The length, in characters, of the verb and its colon in the raw last segment; 0 without a verb. */
  readonly verbLength: number;
}

/** The templates of one HTTP method as a tree of segments. */
export class PathTree {
  readonly #root = new Node();
  /** The decoded verbs of all routes. A path has a verb only if a route has registered it. */
  readonly #verbs = new Set<string>();
  /** The maximum length of a verb in a request, in characters: each byte may be percent-encoded. */
  #longestVerb = 0;

  insert(route: Route): void {
    let node = this.#root;
    for (const segment of route.segments) {
      if (segment === "*") node = node.star ??= new Node();
      else if (segment === "**") node = node.doubleStar ??= new Node();
      else {
        const literal = decodeAll(segment);
        const next = node.literals.get(literal) ?? new Node();
        node.literals.set(literal, next);
        node = next;
      }
    }
    const verb = decodeAll(route.verb);
    if (verb === "") node.end = route;
    else {
      node.verbs.set(verb, route);
      this.#verbs.add(verb);
    }
    this.#longestVerb = Math.max(this.#longestVerb, route.verb.length * 3);
  }

  /**
   * Finds the route of a path. The longest registered verb that leads to a route wins over wildcards that would take its colon as text, at
   * any depth. It does not win over a literal that is the whole last segment.
   */
  find(path: Path): Found | undefined {
    const withVerb = path.colon && this.#longestVerb > 0 ? this.#findVerb(path) : undefined;
    if (withVerb !== undefined && endsInLiteral(withVerb.route)) return withVerb;
    const route = find(this.#root, path.decoded, "", 0);
    if (withVerb !== undefined && (route === undefined || !endsInLiteral(route))) return withVerb;
    return route && { route, verbLength: 0 };
  }

  /** Tries the registered verbs at the end of the path, the longest first. `%3A` never starts a verb. */
  #findVerb({ raw, decoded }: Path): Found | undefined {
    const segment = raw.at(-1) ?? "";
    const from = Math.max(0, segment.length - 1 - this.#longestVerb);
    for (let colon = segment.indexOf(":", from); colon !== -1; colon = segment.indexOf(":", colon + 1)) {
      const verb = decodeOrNothing(segment.slice(colon + 1));
      if (verb === undefined || !this.#verbs.has(verb)) continue;
      // `/:verb` is `/**:verb` with zero segments; elsewhere a segment is never empty.
      if (colon === 0 && raw.length > 1) continue;
      const before = decoded.slice(0, -1);
      if (colon > 0) before.push(decodeOrNothing(segment.slice(0, colon)));
      const route = find(this.#root, before, verb, 0);
      if (route !== undefined) return { route, verbLength: segment.length - colon };
    }
    return undefined;
  }
}

/** The decoded segments; undefined if a segment's escape is malformed. */
type Segments = readonly (string | undefined)[];

/** Finds a route with backtracking. At each node literals are tried before `*`, and `*` before `**`. */
function find(node: Node, segments: Segments, verb: string, at: number): Route | undefined {
  const { star, doubleStar } = node;
  if (at === segments.length) return endOf(node, verb) ?? (doubleStar && endOf(doubleStar, verb));
  const literal = literalChild(node, segments[at]);
  return (
    (literal && find(literal, segments, verb, at + 1)) ??
    (star && find(star, segments, verb, at + 1)) ??
    (doubleStar && findRest(doubleStar, segments, verb, at))
  );
}

/** Finds a route through `**`, which leaves the last segments to the literals after it. Routes with more literals are tried first. */
function findRest(node: Node, segments: Segments, verb: string, at: number): Route | undefined {
  if (node.literals.size > 0) {
    for (let rest = at; rest < segments.length; rest++) {
      const found = findLiterals(node, segments, verb, rest);
      if (found !== undefined) return found;
    }
  }
  return endOf(node, verb);
}

function findLiterals(from: Node, segments: Segments, verb: string, at: number): Route | undefined {
  let node: Node | undefined = from;
  for (let index = at; node !== undefined && index < segments.length; index++) {
    node = literalChild(node, segments[index]);
  }
  return node && endOf(node, verb);
}

function endOf(node: Node, verb: string): Route | undefined {
  return verb === "" ? node.end : node.verbs.get(verb);
}

function endsInLiteral({ segments }: Route): boolean {
  const last = segments.at(-1);
  return last !== "*" && last !== "**";
}

function literalChild(node: Node, decoded: string | undefined): Node | undefined {
  return decoded === undefined ? undefined : node.literals.get(decoded);
}

/** Decodes a segment for comparison. A segment with malformed escapes gives undefined, which equals no literal. */
function decodeOrNothing(raw: string): string | undefined {
  if (!raw.includes("%")) return raw;
  try {
    return decodeAll(raw);
  } catch {
    return undefined;
  }
}
