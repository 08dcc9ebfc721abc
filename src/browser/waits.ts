/** How long tabs wait for each other and between attempts. */

/** How long the other tabs have to send a token, in ms. Twice the time that the lock took is added. */
export const ASK_MS = 50;
/** The longest time that the other tabs have to send a token, in ms. */
export const MAX_PATIENCE_MS = 1_000;
/** How long the other tabs have to send a token if this tab still has a valid one, in ms. They may be busy, so it is more than `ASK_MS`. */
export const PATIENCE_MS = 500;
/** Tabs and clients that react to the same event send their requests at random times within this period, in ms. */
export const SPREAD_MS = 500;
const BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;
/** Returns the longest wait after this many failures, in ms, which doubles with each. The actual wait has full jitter. */
export const maxBackoffMs = (failures: number): number => Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** failures);
/** The longest time that the kit waits because the service asks it to, in ms. */
export const MAX_RETRY_AFTER_MS = 600_000;
