/**
 * Chooses the mutants to judge, at random by a seed. They are distributed over the groups of source files (rooms) in proportion to the size
 * of each.
 */
import { createHash } from "node:crypto";

export type Share<T> = { readonly room: string; readonly quota: number; readonly order: readonly T[] };

/** Uniform numbers in [0, 1) from a seed (mulberry32). */
export function randomFrom(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const order = [...items];
  for (let at = order.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1));
    [order[at], order[other]] = [order[other] as T, order[at] as T];
  }
  return order;
}

/**
 * Returns the mutants of each room (group of source files) in random order, and how many of them to judge. The number is a share of `count`
 * in proportion to the possible mutants of the room, but at least `least`. The order depends on the seed and the room alone, so that the
 * choice in a room stays the same when other rooms or `count` change.
 */
export function shares<T extends { readonly room: string }>(
  mutants: readonly T[],
  { count, least, seed }: { readonly count: number; readonly least: number; readonly seed: string },
): Share<T>[] {
  return [...Map.groupBy(mutants, ({ room }) => room)].map(([room, own]) => {
    const number = createHash("sha256").update(`${seed} ${room}`).digest().readUInt32BE();
    const quota = Math.min(own.length, Math.max(least, Math.round((count * own.length) / mutants.length)));
    return { room, quota, order: shuffled(own, randomFrom(number)) };
  });
}

/**
 * Returns the next mutant to judge. It is from the room (group of source files) that is furthest behind its quota, so that even an aborted
 * run covers all rooms evenly.
 */
export function choose<T>(given: readonly Share<T>[]) {
  const rooms = given.map((share) => ({ ...share, next: 0, counted: 0 }));
  return {
    next(): { readonly mutant: T; notCounted(): void } | undefined {
      const open = rooms.filter(({ next, counted, quota, order }) => counted < quota && next < order.length);
      const [behind] = open.sort((a, b) => a.counted / a.quota - b.counted / b.quota);
      if (behind === undefined) return undefined;
      const mutant = behind.order[behind.next++] as T;
      behind.counted += 1;
      return {
        mutant,
        notCounted() {
          behind.counted -= 1;
        },
      };
    },
  };
}
