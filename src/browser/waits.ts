/** How long tabs wait for each other and between attempts. */

/** How long this tab waits until another tab sends a token, in ms. Twice the time for which it waited for the lock is added. */
export const ASK_MS = 50;
/** The longest time for which this tab waits until another tab sends a token, in ms. */
export const MAX_PATIENCE_MS = 1_000;
/** How long this tab waits for a token of another tab while its own is still valid, in ms. Other tabs may be busy. */
export const PATIENCE_MS = 500;
/** Tabs and clients that react to the same event send their requests at random times within this period, in ms. */
export const SPREAD_MS = 500;
const BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;
/** Returns the longest wait after this many failures, in ms, which doubles with each. The actual wait has full jitter. */
export const maxBackoffMs = (failures: number): number => Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** failures);
/** The longest time that the kit waits because the service asks it to, in ms. */
export const MAX_RETRY_AFTER_MS = 600_000;
