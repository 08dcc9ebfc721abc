/** Measures durations by counting turns of the event loop. A busy machine makes turns longer, but does not change their number. */

const TURN_MS = 100;

/** Counts how often a timer of this process fires until `work` has settled. */
export async function countTurns(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  const timer = setInterval(() => turns++, TURN_MS);
  try {
    await work();
  } finally {
    clearInterval(timer);
  }
  return turns;
}
