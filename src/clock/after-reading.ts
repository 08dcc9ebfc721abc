/**
 * Timeouts that do not blame others for time in which this process did not run.
 * When a process was stopped, busy or without a processor, it finds timers that have run out, and bytes that came in time and wait to be
 * read. Node calls the timers first.
 */
import { release } from "./pause.ts";

/** Calls in the next turn of the event loop. Only Node, and what follows it, has `setImmediate`. */
function inNextTurn(then: () => void): void {
  if (typeof setImmediate === "function") setImmediate(then);
  else setTimeout(then, 0);
}

/** Calls `then` when everything that had arrived by now has been read: after a whole poll of the event loop. */
export function afterReading(then: () => void): void {
  // The first turn may run at the end of a poll that began before now, so a second one is needed.
  inNextTurn(() => inNextTurn(then));
}

/** The longest delay of a Node timer, in ms. A longer one fires at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/**
 * Works as setTimeout, for waiting on a client or a server. Before it gives up, it lets everything be read that had arrived, which may
 * cancel it. It does not keep the process running.
 *
 * @param ms more than 2^31-1 (24 days), such as Infinity, means that it never gives up
 * @returns a function that cancels it
 */
export function patientTimeout(giveUp: () => void, ms: number): () => void {
  if (ms > MAX_DELAY_MS) return () => {};
  let isCancelled = false;
  const timer = release(setTimeout(() => afterReading(() => isCancelled || giveUp()), ms));
  return () => {
    isCancelled = true;
    clearTimeout(timer);
  };
}
