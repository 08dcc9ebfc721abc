/** How long tabs wait for each other's messages. */

/** How long the other tabs are given to hand over a token, ms. */
export const ASK_MS = 50;
/** A tab that had to wait long for a lock asks longer, but not longer than this, ms. */
export const MAX_PATIENCE_MS = 1_000;
/** While the token in hand is valid, busy tabs have longer, ms. */
export const PATIENCE_MS = 500;
