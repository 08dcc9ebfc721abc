/** Runs a piece of work once for all who ask for it while it is under way. */
import { pause } from "../clock/pause.ts";

export type OneAtATime = {
  /** Resolves when the work has ended, whoever began it. The work never rejects. */
  readonly run: (work: () => Promise<void>) => Promise<void>;
  /** Whether work is under way, as far as that is known: its request may have been ended. */
  readonly isUnderWay: () => boolean;
};

/** Callers share one promise. */
export function shareWork(): OneAtATime {
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

/** How often a caller asks whether the work of another request has ended, in ms. */
const RECHECK_MS = 10;
/** After this many rechecks of the same work, which are a second, one of the callers takes it over. */
const MAX_RECHECKS = 100;

/**
 * Callers wait by timers of their own, because they are requests of an isolate: the runtime may end the request that works, and with it
 * everything that it awaits.
 */
export function takeTurns(): OneAtATime & {
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
          // Another caller has taken over, and gets its time.
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
