/** Runs a piece of work once for all who ask for it while it is under way. */
import { pause } from "../clock/pause.ts";

/** Resolves when the work has ended, whoever began it. The work never rejects. */
export type OneAtATime = (work: () => Promise<void>) => Promise<void>;

/** Callers share one promise. */
export function shareWork(): OneAtATime {
  let underWay: Promise<void> | undefined;
  return (work) => {
    underWay ??= work().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}

/** How often a caller asks whether the work of another request has ended, and how often it asks before it works itself. */
const RECHECK_MS = 10;
const MAX_RECHECKS = 500;

/**
 * Callers wait by timers of their own, because they are requests of an isolate: the runtime may end the request that works, and with it
 * everything that it awaits.
 */
export function takeTurns(): OneAtATime {
  let [begun, ended] = [0, 0];
  return async (work) => {
    const awaited = begun;
    if (awaited > ended) {
      for (let checks = 0; checks < MAX_RECHECKS; checks++) {
        await pause(RECHECK_MS);
        if (ended >= awaited) return;
      }
    }
    const turn = ++begun;
    await work();
    ended = Math.max(ended, turn);
  };
}
