/** The time limits of tests. Tests wait for events, so only failures take that long. The limits are long enough for a very busy machine. */

/** The time limit of a test, in ms. */
export const HANG_MS = 300_000;

/** The time limit of one event within a test, in ms. It is shorter, so that a failure names the missing event. */
export const PATIENCE_MS = 240_000;
