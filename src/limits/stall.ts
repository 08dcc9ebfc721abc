/**
 * Detects requests that have waited in this process, while it was stopped, starved of its processor, busy, or suspended with its
 * machine.
 *
 * After a stall, the process reads requests that may have been sent longer ago than the rules of rotation allow. Such a request gets the
 * response of a store that is unavailable, and a caller that is still there tries again. Requests that cannot have waited so long are served.
 */
import { type Turns, turns as turnsOfProcess } from "../clock/turns.ts";

const MIN_TOLERANCE_MS = 500;
/** Callers mostly give up after this time, ms. It applies to verbs without rotation: a late effect would surprise, but log nobody out. */
const OTHERS_TOLERANCE_MS = 10_000;

/** How long requests may wait in this process before they are acted upon, ms. */
type Tolerances = {
  /** Those that present a refresh token. */
  readonly rotationMs: number;
  readonly othersMs: number;
};

/**
 * Returns how long a rotation may wait: a quarter of the reuse interval, which leaves as much for the network, and at least 500 ms. The
 * start warns of a reuse interval below 2 s. Without a reuse interval nothing is promised, and no refresh is refused.
 */
export function stallTolerances(reuseIntervalMs: number): Tolerances {
  const rotationMs = reuseIntervalMs === 0 ? Number.POSITIVE_INFINITY : Math.max(reuseIntervalMs / 4, MIN_TOLERANCE_MS);
  return { rotationMs, othersMs: Math.max(reuseIntervalMs / 4, OTHERS_TOLERANCE_MS) };
}

export class StallGuard {
  readonly #tolerances: Tolerances;
  readonly #turns: Turns;
  readonly #stop: () => void;

  constructor(reuseIntervalMs: number, turns = turnsOfProcess) {
    this.#tolerances = stallTolerances(reuseIntervalMs);
    this.#turns = turns;
    this.#stop = turns.follow(() => {});
  }

  /** Whether a request that was read in this turn of the event loop may have waited for too long before it was read. */
  mayBeTooOld(of: keyof Tolerances): boolean {
    return this.#turns.behindMs() > this.#tolerances[of];
  }

  close(): void {
    this.#stop();
  }
}
