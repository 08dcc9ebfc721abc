/**
 * Time in which this process did not run is nobody's delay. A process that was stopped, starved of its processor or busy comes back
 * to timers that have run out, and to bytes that came in time and wait to be read. The timers are called first.
 */

/** Calls `then` when everything has been read that had arrived by now: after a whole poll of the event loop. */
export function afterReading(then: () => void): void {
  // The first may come at the end of a poll that began before now.
  setImmediate(() => setImmediate(then));
}

/** The longest delay of a timer of Node: a longer one fires at once. */
const MAX_DELAY_MS = 2 ** 31 - 1;

/**
 * As setTimeout, for waiting on somebody else: before it gives up, what had arrived is read, which may cancel it. Keeps no
 * process running.
 *
 * @param ms after more than 2^31-1 (24 days), such as Infinity, it never gives up
 * @returns how to cancel it
 */
export function patientTimeout(giveUp: () => void, ms: number): () => void {
  if (ms > MAX_DELAY_MS) return () => {};
  let isCancelled = false;
  const timer = setTimeout(() => afterReading(() => isCancelled || giveUp()), ms).unref();
  return () => {
    isCancelled = true;
    clearTimeout(timer);
  };
}
