import { setTimeout as sleep } from "node:timers/promises";

/** How long a request for the metrics waits for a value of the store, in ms, so that a stalled store does not delay all others. */
const WAIT_MS = 250;

/** Caches the result of `read`, and reads it again when it is old, in the background if that is slow. It is undefined after a failure. */
export function kept<T>(read: () => Promise<T>, lifeMs: number, clock: () => number): () => Promise<T | undefined> {
  let readAt = Number.NEGATIVE_INFINITY;
  let last: T | undefined;
  let reading: Promise<void> | undefined;
  const start = async () => {
    try {
      last = await read();
      readAt = clock();
    } catch {
      last = undefined;
    }
    reading = undefined;
  };
  return async () => {
    if (Math.abs(clock() - readAt) >= lifeMs) {
      reading ??= start();
      await Promise.race([reading, sleep(WAIT_MS, undefined, { ref: false })]);
    }
    return last;
  };
}
