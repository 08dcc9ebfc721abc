/** Detects proofs that were presented before (replays). */
export interface Replays {
  /** Remembers a proof. Returns whether it is new. */
  isNew(id: string): boolean;
}

type ReplaysOptions = {
  /** For how long a proof is remembered at least, in ms. */
  readonly windowMs: number;
  readonly monotonic: () => number;
  /** How many proofs are remembered at most. Beyond that number the older half is forgotten early. */
  readonly maxProofs?: number;
};

/** The default of `maxProofs`. All together take at most 7 MB. */
const MAX_PROOFS = 200_000;

/** Remembers proofs in a young set and an old one. When the young set is full or old, it replaces the old one, and a new one begins. */
export function createReplays({ windowMs, monotonic, maxProofs = MAX_PROOFS }: ReplaysOptions): Replays {
  let young = new IdSet();
  let old = new IdSet();
  let youngSinceMs = monotonic();
  const rotate = (kept: IdSet) => {
    old = kept;
    young = new IdSet();
    youngSinceMs = monotonic();
  };
  return {
    isNew(id) {
      const ageMs = monotonic() - youngSinceMs;
      if (ageMs >= windowMs) rotate(ageMs >= 2 * windowMs ? new IdSet() : young);
      if (young.has(id) || old.has(id)) return false;
      if (young.size >= maxProofs / 2) rotate(young);
      young.add(id);
      return true;
    },
  };
}

/** How many characters of an id make a word of 30 bits, and how many words identify a proof, by more than 80 bits of its hash. */
const CHARACTERS = 5;
const WORDS = 3;

/** Remembers ids in an array of numbers. A set of texts would fill the old generation of the heap, whose collections delay requests. */
class IdSet {
  size = 0;
  /** The words of each id, one after another; -1 where there is none. At most half of the places are taken. */
  #words = new Int32Array(WORDS * 256).fill(-1);
  /** The number of places is two to this power. */
  #bits = 8;
  /** Random and odd, so that nobody can choose ids whose places are next to each other. 0 before the first id. */
  #factor = 0;
  readonly #id = new Int32Array(WORDS);

  has(id: string): boolean {
    return this.#words[this.#placeOf(this.#wordsOf(id), 0)] !== -1;
  }

  add(id: string): void {
    const before = this.#words;
    if (2 * WORDS * ++this.size > before.length) {
      this.#words = new Int32Array(2 * before.length).fill(-1);
      this.#bits++;
      for (let at = 0; at < before.length; at += WORDS) if (before[at] !== -1) this.#put(before, at);
    }
    this.#put(this.#wordsOf(id), 0);
  }

  /** Returns the words of an id, in an array that the next call uses again. */
  #wordsOf(id: string): Int32Array {
    for (let word = 0; word < WORDS; word++) this.#id[word] = wordOf(id, word * CHARACTERS);
    return this.#id;
  }

  #put(id: Int32Array, at: number): void {
    const place = this.#placeOf(id, at);
    for (let word = 0; word < WORDS; word++) this.#words[place + word] = id[at + word] ?? 0;
  }

  /** Returns the place of an id, or the free one where it is to be put. */
  #placeOf(id: Int32Array, at: number): number {
    const words = this.#words;
    // Workers have no random numbers while a module is loaded.
    if (this.#factor === 0) this.#factor = (crypto.getRandomValues(new Int32Array(1))[0] ?? 0) | 1;
    const mixed = Math.imul((id[at] ?? 0) ^ ((id[at + 1] ?? 0) << 2), this.#factor);
    let place = (mixed >>> (32 - this.#bits)) * WORDS;
    while (words[place] !== -1 && !isSame(words, place, id, at)) place = (place + WORDS) % words.length;
    return place;
  }
}

function wordOf(id: string, from: number): number {
  let word = 0;
  for (let at = from; at < from + CHARACTERS; at++) word = (word << 6) ^ (at < id.length ? id.charCodeAt(at) & 63 : 0);
  return word;
}

function isSame(words: Int32Array, place: number, id: Int32Array, at: number): boolean {
  for (let word = 0; word < WORDS; word++) if (words[place + word] !== id[at + word]) return false;
  return true;
}
