/** How long the outcome of a check is reused, in ms. */
const RECENT_MS = 100;

/**
 * Runs a check once at a time, and shares its outcome for 100 ms, because anybody can request the readiness page, and each check of the
 * store costs a write.
 */
export function checkAtIntervals(check: () => Promise<void>, clock = () => performance.now()): () => Promise<void> {
  let last: Promise<void> | undefined;
  let validUntil = 0;
  return () => {
    if (last !== undefined && clock() < validUntil) return last;
    const current = check();
    const end = () => {
      validUntil = clock() + RECENT_MS;
    };
    last = current;
    validUntil = Number.POSITIVE_INFINITY;
    current.then(end, end);
    return current;
  };
}
