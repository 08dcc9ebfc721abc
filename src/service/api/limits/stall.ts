/**
 * Detects requests that have waited in this process, while it was stopped, busy, or suspended with its machine. After such a stall the
 * process reads requests that may be older than the rules of rotation allow. They get the response for an unavailable store, and callers
 * that are still there try again.
 */
import { type Turns, turns as turnsOfProcess } from "../../../platform/clock/turns.ts";

const MIN_TOLERANCE_MS = 500;
/** The limit in ms for methods other than rotation: most callers have given up by then, and a late effect would surprise them. */
const OTHERS_TOLERANCE_MS = 10_000;

/** How long requests may have waited in this process, in ms. */
type Tolerances = {
  /** For requests that present a refresh token. */
  readonly rotationMs: number;
  readonly othersMs: number;
};

/**
 * A refresh may wait in this process for a quarter of the reuse interval, so that its request may spend another quarter on the network. The
 * minimum is 500 ms, so the service warns at its start of a reuse interval below 2 s. If the interval is 0,
 * a late refresh breaks no promise, so none is refused.
 */
export function stallTolerances(reuseIntervalMs: number): Tolerances {
  const rotationMs = reuseIntervalMs === 0 ? Number.POSITIVE_INFINITY : Math.max(reuseIntervalMs / 4, MIN_TOLERANCE_MS);
  return { rotationMs, othersMs: Math.max(reuseIntervalMs / 4, OTHERS_TOLERANCE_MS) };
}

export type StallGuard = ReturnType<typeof createStallGuard>;

export function createStallGuard(reuseIntervalMs: number, turns: Turns = turnsOfProcess) {
  const tolerances = stallTolerances(reuseIntervalMs);
  return {
    /** Returns whether a request that is read in this turn of the event loop may have waited too long. */
    mayBeTooOld: (of: keyof Tolerances) => turns.behindMs() > tolerances[of],
    close: turns.follow(() => {}),
  };
}
