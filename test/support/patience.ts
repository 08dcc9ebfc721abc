/**
 * The time limits of tests. Tests wait for events, so only a failure takes that long. The limits tell a hang from a machine that does ten
 * other things.
 */

/** The time limit of a test, in ms. */
export const HANG_MS = 300_000;

/** The time limit of one event within a test, in ms. It is shorter, so that a failure names the missing event. */
export const PATIENCE_MS = 240_000;
