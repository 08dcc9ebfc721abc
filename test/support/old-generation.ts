/** What code allocates in the old generation directly, without surviving collections of the young one. */
import { getHeapSpaceStatistics } from "node:v8";

/** So few that the young generation is not collected in most rounds: what is promoted does not count. */
const CALLS = 500;
const ROUNDS = 9;

/** Returns the bytes in use in the old generation. */
export function oldGeneration(): number {
  return getHeapSpaceStatistics().find(({ space_name }) => space_name === "old_space")?.space_used_size ?? Number.NaN;
}

/** Returns by how many bytes the old generation grows with each call: the median of several rounds, because a collection may fall into any. */
export function grownWithEachCall(call: () => unknown): number {
  const rounds = Array.from({ length: ROUNDS }, () => {
    const before = oldGeneration();
    for (let i = 0; i < CALLS; i++) call();
    return (oldGeneration() - before) / CALLS;
  });
  return rounds.toSorted((a, b) => a - b)[(ROUNDS - 1) / 2] ?? Number.NaN;
}
