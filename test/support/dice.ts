/** A repeatable stream of random numbers: mulberry32. */
export type Dice = {
  /** Returns a number in [0, 1). */
  next(): number;
  /** Returns an integer in [0, below). */
  below(below: number): number;
  chance(probability: number): boolean;
  pick<T>(of: readonly T[]): T;
  shuffle<T>(items: T[]): T[];
};

/** The seed of tests whose clients are random. It is in their names, and the variable `SEED` sets it. */
export const SEED = Number(process.env.SEED ?? 1);

export function dice(seed: number): Dice {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    next,
    below,
    chance: (probability) => next() < probability,
    pick: (of) => {
      const item = of[below(of.length)];
      if (item === undefined) throw new Error("nothing to pick from");
      return item;
    },
    shuffle: (items) => {
      for (let at = items.length - 1; at > 0; at--) {
        const other = below(at + 1);
        [items[at], items[other]] = [items[other] as (typeof items)[0], items[at] as (typeof items)[0]];
      }
      return items;
    },
  };
}
