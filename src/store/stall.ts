/**
 * Whether this process has stood still: stopped, starved of its processor, asleep with its machine.
 *
 * What it reads from its sockets right after that may have been sent any time before, longer ago than the rules of rotation
 * allow for. So for a moment the store is "unavailable": the caller, if there still is one, asks again.
 */
import { StoreUnavailable } from "../session/ports.ts";
import { steadyClock } from "./steady.ts";

/** How often the process looks whether it has stood still, ms. */
const BEAT = 250;
/** For how long after a stall requests may have been sent during it: they are read within a few turns of the event loop, ms. */
const BACKLOG = 500;

export type StallGuard = {
  /** @throws StoreUnavailable when what is handled now may be too old to be acted upon */
  check(): void;
  close(): void;
};

/**
 * It may stand still for a quarter of the reuse interval, or for 500 ms if that is more: as much is left for the network.
 * Without a reuse interval nothing is promised, and nothing is refused.
 */
export function createStallGuard(reuseInterval: number, clock = steadyClock): StallGuard {
  const limit = reuseInterval === 0 ? Number.POSITIVE_INFINITY : Math.max(reuseInterval / 4, 2 * BEAT);
  let beatAt = clock();
  let suspectUntil = Number.NEGATIVE_INFINITY;
  const beat = (now: number) => {
    if (now - beatAt > limit) suspectUntil = now + BACKLOG;
    beatAt = now;
  };
  const look = () => {
    clock.refresh();
    beat(clock());
  };
  const timer = setInterval(look, BEAT).unref();
  return {
    check() {
      const now = clock();
      if (now - beatAt > 2 * BEAT) look();
      if (now < suspectUntil) throw new StoreUnavailable("the process stood still: requests may be too old");
    },
    close: () => clearInterval(timer),
  };
}
