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
  /** Whether the last segment contains a colon, so that it may have a verb. */
  readonly colon: boolean;
}

/** @returns undefined if a segment is empty (as after a trailing slash), which no route matches */
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
  return { raw, decoded, escaped, colon: raw.at(-1)?.includes(":") ?? false };
}

/** A node of the template tree: the segments that may follow. */
class Node {
  /** By decoded literal. */
  readonly literals = new Map<string, Node>();
  /** The literal, if there is exactly one: comparing it is cheaper than hashing part of the path. */
  only: readonly [literal: string, next: Node] | undefined;
  star: Node | undefined;
  doubleStar: Node | undefined;
  /** The route that ends here without a verb, and those with one, by decoded verb. */
  end: Route | undefined;
  readonly verbs = new Map<string, Route>();
}

/** The result of a search. */
export interface Found {
  readonly route: Route;
  /** Length of the verb and its colon in the raw last segment, in characters; 0 without a verb. */
  readonly verbLength: number;
}

/** The templates of one HTTP method as a tree of segments. */
export class PathTree {
  readonly #root = new Node();
  /** Maximum length of a verb in a request, in characters: each byte may be percent-encoded. */
  #longestVerb = 0;

  insert(route: Route): void {
    let node = this.#root;
    for (const segment of route.segments) {
      if (segment === "*") node = node.star ??= new Node();
      else if (segment === "**") node = node.doubleStar ??= new Node();
      else {
        const literal = decodeAll(segment);
        const next: Node = node.literals.get(literal) ?? new Node();
        node.literals.set(literal, next);
        node.only = node.literals.size === 1 ? [literal, next] : undefined;
        node = next;
      }
    }
    if (route.verb === "") node.end = route;
    else node.verbs.set(decodeAll(route.verb), route);
    this.#longestVerb = Math.max(this.#longestVerb, route.verb.length * 3);
  }

  /** At each place the literal comes before `*`, `*` before `**`; where one leads nowhere the search goes back. */
  find(path: Path): Found | undefined {
    // Most tables have no verbs, most paths no colon.
    const splits = this.#longestVerb > 0 && path.colon ? [...verbSplits(path, this.#longestVerb)] : NO_SPLITS;
    return find(this.#root, path, splits, 0);
  }
}

/** One way to split a custom verb off the last segment. */
interface VerbSplit {
  /** The text before the colon: raw, and decoded. */
  readonly head: string;
  readonly literal: string | undefined;
  readonly verb: string;
  /** Length of verb and colon in the raw path, in characters. */
  readonly length: number;
}

/** The longest verb first. */
type Splits = readonly VerbSplit[];

const NO_SPLITS: Splits = [];

/** `%3A` is no colon. Verbs longer than any that a route has are left out, so that no segment of colons makes work. */
function* verbSplits({ raw }: Path, longest: number): Generator<VerbSplit> {
  const segment = raw.at(-1) ?? "";
  const from = Math.max(0, segment.length - 1 - longest);
  for (let colon = segment.indexOf(":", from); colon !== -1; colon = segment.indexOf(":", colon + 1)) {
    const verb = decodeOrNothing(segment.slice(colon + 1));
    if (verb === undefined || verb === "") continue;
    const head = segment.slice(0, colon);
    yield { head, literal: decodeOrNothing(head), verb, length: segment.length - colon };
  }
}

function find(node: Node, path: Path, splits: Splits, at: number): Found | undefined {
  if (at === path.raw.length) return endsAt(node) ?? (node.doubleStar && endsAt(node.doubleStar));
  const literal = literalChild(node, path.decoded[at]);
  const exact = literal && find(literal, path, splits, at + 1);
  if (splits.length > 0 && at === path.raw.length - 1) {
    // A literal with a colon in it gives way to a literal with that verb, not to a wildcard with one.
    const found = findVerb(node, splits, at, exact !== undefined);
    if (found !== undefined) return found;
  }
  return (
    exact ??
    (node.star && find(node.star, path, splits, at + 1)) ??
    (node.doubleStar && findRest(node.doubleStar, path, splits, at))
  );
}

/** `**` takes the segments up to some place, the literals after it take the rest: the most literals win. */
function findRest(node: Node, path: Path, splits: Splits, at: number): Found | undefined {
  if (node.literals.size > 0) {
    for (let rest = at; rest < path.raw.length; rest++) {
      const found = findLiterals(node, path, splits, rest);
      if (found !== undefined) return found;
    }
  }
  for (const split of splits) {
    const found = split.head === "" ? undefined : endsWithVerb(node, split);
    if (found !== undefined) return found;
  }
  return endsAt(node);
}

function findLiterals(node: Node, path: Path, splits: Splits, at: number): Found | undefined {
  if (at === path.raw.length) return endsAt(node);
  if (at === path.raw.length - 1) {
    for (const split of splits) {
      const literal = literalChild(node, split.literal);
      const found = literal && endsWithVerb(literal, split);
      if (found !== undefined) return found;
    }
  }
  const literal = literalChild(node, path.decoded[at]);
  return literal && findLiterals(literal, path, splits, at + 1);
}

/** The longest verb of a route to which the last segment, the verb taken off, leads. */
function findVerb(node: Node, splits: Splits, at: number, literalOnly: boolean): Found | undefined {
  for (const split of splits) {
    for (const end of split.head === "" ? emptyHead(node, at) : nodesAfter(node, split.literal, literalOnly)) {
      const found = endsWithVerb(end, split);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** Where a path can end with that last segment, in order of precedence. */
function* nodesAfter(node: Node, literal: string | undefined, literalOnly: boolean): Generator<Node> {
  for (const next of [literalChild(node, literal), literalOnly ? undefined : node.star]) {
    if (next === undefined) continue;
    yield next;
    if (next.doubleStar !== undefined) yield next.doubleStar;
  }
  if (literalOnly || node.doubleStar === undefined) return;
  const after = literalChild(node.doubleStar, literal);
  if (after !== undefined) yield after;
  yield node.doubleStar;
}

/** `/**:verb` without any segment is `/:verb`; elsewhere a segment is never empty. */
function* emptyHead(node: Node, at: number): Generator<Node> {
  if (at === 0 && node.doubleStar !== undefined) yield node.doubleStar;
}

function endsAt({ end }: Node): Found | undefined {
  return end && { route: end, verbLength: 0 };
}

function endsWithVerb(node: Node, { verb, length }: VerbSplit): Found | undefined {
  const route = node.verbs.get(verb);
  return route && { route, verbLength: length };
}

function literalChild(node: Node, decoded: string | undefined): Node | undefined {
  if (node.only !== undefined) return node.only[0] === decoded ? node.only[1] : undefined;
  return decoded === undefined || node.literals.size === 0 ? undefined : node.literals.get(decoded);
}

/** Decodes for comparison; undefined, which equals no literal, if the escapes are malformed. */
function decodeOrNothing(raw: string): string | undefined {
  if (!raw.includes("%")) return raw;
  try {
    return decodeAll(raw);
  } catch {
    return undefined;
  }
}
