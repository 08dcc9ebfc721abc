/**
 * Detects requests that have waited in this process, while it was stopped, starved of its processor, busy, or suspended with its
 * machine.
 *
 * After a stall, the process reads requests that may have been sent longer ago than the rules of rotation allow. Such a request gets the
 * response of a store that is unavailable, and a caller that is still there tries again. All other requests are processed as usual.
 */
import { type Turns, turns as turnsOfProcess } from "../../platform/clock/turns.ts";

const MIN_TOLERANCE_MS = 500;
/**
 * The time in ms after which most callers have given up. It applies to methods other than rotation: a late effect of those would be a
 * surprise, but would not log anybody out.
 */
const OTHERS_TOLERANCE_MS = 10_000;

/** How long requests may have waited in this process before they are processed, in ms. */
type Tolerances = {
  /** The limit for requests that present a refresh token. */
  readonly rotationMs: number;
  readonly othersMs: number;
};

/**
 * Returns how long a rotation may wait in this process: a quarter of the reuse interval, so that a request may spend another quarter on
 * the network; but at least 500 ms, so the service warns at its start of a reuse interval below 2 s. If there is no reuse interval, a
 * late refresh breaks no promise, so none is refused.
 */
export function stallTolerances(reuseIntervalMs: number): Tolerances {
  const rotationMs = reuseIntervalMs === 0 ? Number.POSITIVE_INFINITY : Math.max(reuseIntervalMs / 4, MIN_TOLERANCE_MS);
  return { rotationMs, othersMs: Math.max(reuseIntervalMs / 4, OTHERS_TOLERANCE_MS) };
}

export type StallGuard = ReturnType<typeof createStallGuard>;

export function createStallGuard(reuseIntervalMs: number, turns: Turns = turnsOfProcess) {
  const tolerances = stallTolerances(reuseIntervalMs);
  return {
    /** Returns whether a request that is read in this turn of the event loop may have waited too long before it was read. */
    mayBeTooOld: (of: keyof Tolerances) => turns.behindMs() > tolerances[of],
    close: turns.follow(() => {}),
  };
}
