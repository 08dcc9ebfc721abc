/**
 * How long is waited for what does not come.
 *
 * Tests wait for events, so only a failure takes that long: the limits tell a hang from a machine that does ten other things.
 */

/** A test, ms. */
export const HANG_MS = 300_000;

/** One event within a test, ms: less, so that a failure names what did not come. */
export const PATIENCE_MS = 240_000;
