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

/** The default of `maxProofs`. An id takes about 100 bytes, so all together take at most 20 MB. */
const MAX_PROOFS = 200_000;

/** Remembers proofs in a young set and an old one. When the young set is full or old, it replaces the old one, and a new one begins. */
export function createReplays({ windowMs, monotonic, maxProofs = MAX_PROOFS }: ReplaysOptions): Replays {
  let young = new Set<string>();
  let old = new Set<string>();
  let youngSinceMs = monotonic();
  const rotate = (kept: Set<string>) => {
    old = kept;
    young = new Set();
    youngSinceMs = monotonic();
  };
  return {
    isNew(id) {
      const ageMs = monotonic() - youngSinceMs;
      if (ageMs >= windowMs) rotate(ageMs >= 2 * windowMs ? new Set() : young);
      if (young.has(id) || old.has(id)) return false;
      if (young.size >= maxProofs / 2) rotate(young);
      young.add(id);
      return true;
    },
  };
}
