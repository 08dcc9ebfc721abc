/** Measures durations in turns of the event loop: a busy machine makes turns longer, but not more. */

const TURN_MS = 100;

/** Counts the turns of a timer of this process until `work` has ended, successfully or not. */
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
