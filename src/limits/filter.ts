/** Slots of the filter, a power of two: 128 KiB, and at 10,000 keys a second few keys share one. */
const SLOTS = 65_536;

/** Separates keys that are rarely seen from those that may be seen too often, in constant memory. */
export interface Filter {
  /** Counts one more for `key`; true while it cannot have been counted more than `allowance` times in this window. */
  passes(key: string): boolean;
  /** Takes one back. False where `passes` would be false by now: the caller has counted this key elsewhere. */
  giveBack(key: string): boolean;
}

export type FilterOptions = {
  /** How often any key passes per window. */
  readonly allowance: number;
  readonly windowMs: number;
  /** Milliseconds that never step back. */
  readonly clock: () => number;
  /** Makes slots unpredictable: an attacker cannot choose keys that share one. 32 bits. */
  readonly seed: number;
};

/**
 * Counts by a hash of the key, all slots anew in each window. Keys that share a slot share its allowance, so the filter
 * reports "maybe too often" too early, never too late: what it does not pass has to be counted exactly.
 */
export function createFilter({ allowance, windowMs, clock, seed }: FilterOptions): Filter {
  const counts = new Uint16Array(SLOTS);
  let windowEnd = 0;
  const slotOf = (key: string): number => {
    const now = clock();
    if (now >= windowEnd) {
      counts.fill(0);
      windowEnd = now + windowMs;
    }
    // FNV-1a: keys are short, and the seed is secret.
    let hash = seed;
    for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 16_777_619);
    return (hash ^ (hash >>> 15)) & (SLOTS - 1);
  };
  return {
    passes(key) {
      const slot = slotOf(key);
      const count = counts[slot] as number;
      if (count >= allowance) return false;
      counts[slot] = count + 1;
      return true;
    },
    giveBack(key) {
      const slot = slotOf(key);
      const count = counts[slot] as number;
      if (count >= allowance) return false;
      if (count > 0) counts[slot] = count - 1;
      return true;
    },
  };
}
