/**
 * Whether this process has stood still: stopped, starved of its processor, asleep with its machine.
 *
 * What it reads from its sockets right after that may have been sent any time before, longer ago than the rules of rotation
 * allow for. So for a moment the store is "unavailable": the caller, if there still is one, asks again.
 */
import { StoreUnavailable } from "../session/ports.ts";

/** How often the process looks whether it has stood still, ms. */
const BEAT = 250;
/** For how long after a stall requests may have been sent during it: they are read within a few turns of the event loop, ms. */
const BACKLOG = 500;

export type StallGuard = {
  /** @throws StoreUnavailable when what is handled now may be too old to be acted upon */
  check(now: number): void;
  close(): void;
};

/**
 * @param clock monotonic, ms
 * @param limit how long the process may stand still; a quarter of the reuse interval leaves as much for the network
 */
export function createStallGuard(clock: () => number, limit: number): StallGuard {
  let beatAt = clock();
  let suspectUntil = Number.NEGATIVE_INFINITY;
  const look = (now: number) => {
    if (now - beatAt > Math.max(limit, 2 * BEAT)) suspectUntil = now + BACKLOG;
    beatAt = now;
  };
  const timer = setInterval(() => look(clock()), BEAT).unref();
  return {
    check(now) {
      if (now - beatAt > 2 * BEAT) look(now);
      if (now < suspectUntil) throw new StoreUnavailable("the process stood still: requests may be too old");
    },
    close: () => clearInterval(timer),
  };
}
