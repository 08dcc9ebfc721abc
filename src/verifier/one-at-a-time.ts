/** Shares a piece of work among all callers that ask for it at the same time. */
import { pause } from "../platform/clock/pause.ts";

export type OneAtATime = {
  /** Runs the work, unless it is already under way. Resolves when the work has ended. The work must never reject. */
  readonly run: (work: () => Promise<void>) => Promise<void>;
  /** Returns whether work seems to be under way. The result may be wrong: the request that began the work may have been terminated. */
  readonly isUnderWay: () => boolean;
};

/** Shares work among callers that all await one promise. */
export function shareByPromise(): OneAtATime {
  let underWay: Promise<void> | undefined;
  return {
    run(work) {
      underWay ??= work().finally(() => {
        underWay = undefined;
      });
      return underWay;
    },
    isUnderWay: () => underWay !== undefined,
  };
}

/** How often a caller checks whether the work of another request has ended, in ms. */
const RECHECK_MS = 10;
/** After this many checks (a second) one of the waiting callers does the work itself. */
const MAX_RECHECKS = 100;

/**
 * Shares work among the requests of an isolate, as in Workers. The runtime may terminate the request that does the work, and with it
 * everything that awaits its promise. So each caller waits with its own timer.
 */
export function shareByPolling(): OneAtATime & {
  /** Resolves when the work that is under way has ended, or after a second. */
  readonly settle: () => Promise<void>;
} {
  let [begun, ended] = [0, 0];
  return {
    async settle() {
      const awaited = begun;
      for (let checks = 0; ended < awaited && checks < MAX_RECHECKS; checks++) await pause(RECHECK_MS);
    },
    async run(work) {
      const awaited = begun;
      if (awaited > ended) {
        for (let [turn, checks] = [begun, 0]; checks < MAX_RECHECKS; checks++) {
          await pause(RECHECK_MS);
          if (ended >= awaited) return;
          // Another caller has taken over the work, and now has a second to complete it.
          if (begun !== turn) [turn, checks] = [begun, 0];
        }
      }
      const turn = ++begun;
      await work();
      ended = Math.max(ended, turn);
    },
    isUnderWay: () => begun > ended,
  };
}
