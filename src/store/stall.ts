/**
 * Detects that this process was stalled: stopped, starved of its processor, suspended with its machine.
 *
 * What it reads from its sockets right after a stall may have been sent longer ago than the rules of rotation allow for. So
 * the store is "unavailable" for a moment: a caller that is still there tries again.
 */
import { StoreUnavailable } from "../session/ports.ts";
import { steadyClock } from "./steady.ts";

const CHECK_INTERVAL_MS = 250;
/** How long after a stall requests that were sent during it are still being read: some turns of the event loop. */
const BACKLOG_MS = 500;

export type StallGuard = {
  /** @throws StoreUnavailable when the request that is handled now may be too old to be acted upon */
  check(): void;
  close(): void;
};

/**
 * Tolerates stalls of a quarter of the reuse interval, which leaves as much for the network, and at least 500 ms: the start
 * warns of a reuse interval below 2 s. Without a reuse interval nothing is promised, and nothing is rejected.
 */
export function createStallGuard(reuseInterval: number, clock = steadyClock): StallGuard {
  const limitMs = reuseInterval === 0 ? Number.POSITIVE_INFINITY : Math.max(reuseInterval / 4, 2 * CHECK_INTERVAL_MS);
  let checkedAt = clock();
  let suspectUntil = Number.NEGATIVE_INFINITY;
  const record = (now: number) => {
    if (now - checkedAt > limitMs) suspectUntil = now + BACKLOG_MS;
    checkedAt = now;
  };
  const look = () => {
    clock.refresh();
    record(clock());
  };
  const timer = setInterval(look, CHECK_INTERVAL_MS).unref();
  return {
    check() {
      const now = clock();
      if (now - checkedAt > 2 * CHECK_INTERVAL_MS) look();
      if (now < suspectUntil) throw new StoreUnavailable("the process was stalled: requests may be too old");
    },
    close: () => clearInterval(timer),
  };
}
