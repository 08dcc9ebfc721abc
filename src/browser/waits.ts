/** How long tabs wait for each other, and between attempts. */

/** How long the other tabs are given to hand over a token, ms; longer by twice what the lock took. */
export const ASK_MS = 50;
/** But not longer than this, ms. */
export const MAX_PATIENCE_MS = 1_000;
/** While the token in hand is valid, busy tabs have longer, ms. */
export const PATIENCE_MS = 500;
/** Tabs, and users, that look because of one event spread over so long, ms. */
export const SPREAD_MS = 500;
const BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 60_000;
/** Between attempts while the service cannot be reached, ms: doubling, with full jitter. */
export const maxBackoffMs = (failures: number): number => Math.min(MAX_BACKOFF_MS, BACKOFF_MS * 2 ** failures);
/** A service that names a longer time is asked after this one, ms. */
export const MAX_RETRY_AFTER_MS = 600_000;
