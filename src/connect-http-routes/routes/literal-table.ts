/** A literal and the node that follows it, in a linked list of the literals that have the same hash (`keyOf`). */
interface Entry<Next> {
  readonly literal: string;
  readonly next: Next;
  readonly other: Entry<Next> | undefined;
}

/** If more literals than this have the same hash of length and last characters, literals are looked up in a Map by their whole text. */
const MAX_SAME_KEY = 8;

/**
 * The literals that may follow at a node of the template tree. They are found without cutting the path up: first by length and last
 * characters, then by comparison.
 */
export class LiteralTable<Next> {
  readonly #byName = new Map<string, Next>();
  #byKey = new Map<number, Entry<Next>>();
  /** The only literal of the table, if there is exactly one. */
  #only: readonly [literal: string, next: Next] | undefined;
  #isCrowded = false;

  get size(): number {
    return this.#byName.size;
  }

  /** Returns the node that follows a literal, and adds it if it is new. */
  add(literal: string, create: () => Next): Next {
    const known = this.#byName.get(literal);
    if (known !== undefined) return known;
    const next = create();
    this.#byName.set(literal, next);
    this.#only = this.size === 1 ? [literal, next] : undefined;
    const key = keyOf(literal, 0, literal.length);
    const other = this.#byKey.get(key);
    this.#byKey.set(key, { literal, next, other });
    let same = 1;
    for (let entry = other; entry !== undefined; entry = entry.other) same++;
    if (same > MAX_SAME_KEY) this.#isCrowded = true;
    return next;
  }

  get(literal: string): Next | undefined {
    if (this.#only !== undefined) return this.#only[0] === literal ? this.#only[1] : undefined;
    return this.size === 0 ? undefined : this.#byName.get(literal);
  }

  /** Returns the node that follows the literal between `start` and `end` of the path. */
  find(path: string, start: number, end: number): Next | undefined {
    if (this.#only !== undefined) {
      const [literal, next] = this.#only;
      return literal.length === end - start && path.startsWith(literal, start) ? next : undefined;
    }
    if (this.size === 0) return undefined;
    if (this.#isCrowded) return this.#byName.get(path.slice(start, end));
    let entry = this.#byKey.get(keyOf(path, start, end));
    while (entry !== undefined) {
      if (entry.literal.length === end - start && path.startsWith(entry.literal, start)) return entry.next;
      entry = entry.other;
    }
    return undefined;
  }
}

/** How many characters at the end of a literal are hashed, together with its length, to find it in the table. */
const KEY_CHARACTERS = 4;

function keyOf(text: string, start: number, end: number): number {
  let key = end - start;
  for (let at = Math.max(start, end - KEY_CHARACTERS); at < end; at++) key = (key * 31 + text.charCodeAt(at)) | 0;
  return key;
}
