/** How long something takes, in turns of the event loop: a machine that does ten other things makes turns longer, not more. */

const TURN_MS = 100;

/** Counts turns of a timer of this process until `work` has ended, however it does. */
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
