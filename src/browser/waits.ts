/** The times for which tabs wait for each other, and between attempts. */

/** The other tabs have this long to hand over a token, ms, and twice as long as the lock took in addition. */
export const ASK_MS = 50;
/** They have no longer than this, ms. */
export const MAX_PATIENCE_MS = 1_000;
/** While this tab has a valid token, busy tabs have longer, ms. */
export const PATIENCE_MS = 500;
/** Tabs and users that act on the same event spread their requests over this time, ms. */
export const SPREAD_MS = 500;
const BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;
/** Returns the longest wait after so many failures to reach the service, ms. It doubles, and the wait itself has full jitter. */
export const maxBackoffMs = (failures: number): number => Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** failures);
/** If the service names a longer time, it is asked after this one, ms. */
export const MAX_RETRY_AFTER_MS = 600_000;
