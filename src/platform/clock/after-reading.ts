/**
 * Timeouts that count only the time in which this process could read. If a process was suspended, busy or without a processor, timers
 * have expired when it continues, and bytes that arrived in time still wait to be read. Node calls the timers before it reads the bytes.
 */
import { release } from "./pause.ts";

/** Calls `then` in the next turn of the event loop. Some runtimes lack `setImmediate`; that of Next.js's edge functions only throws. */
function inNextTurn(then: () => void): void {
  try {
    setImmediate(then);
  } catch {
    setTimeout(then, 0);
  }
}

/** Calls `then` after everything has been read that had arrived by now: after a whole poll of the event loop. */
export function afterReading(then: () => void): void {
  // The first turn may run at the end of a poll that began before now, so a second one is needed.
  inNextTurn(() => inNextTurn(then));
}

/** The longest delay of a Node timer, in ms. A longer one fires at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/**
 * Works as setTimeout, for waiting for a client or a server. When the time is up, everything that has arrived is read first, which may
 * cancel the timeout. It does not keep the process running.
 *
 * @param ms more than 2^31-1 (24 days), such as Infinity, means that the timeout never occurs
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
