/**
 * A clock that is never set: CLOCK_MONOTONIC, and what the machine has slept, which that does not count. Milliseconds from
 * some moment on.
 */
import { uptime } from "node:os";

/** What the two clocks may differ by without a sleep, ms. */
const TOLERANCE_MS = 1_000;

/** How long the machine has been up, sleep included. Only Linux reports that independently of the clock of the day. */
const awakeAndAsleep = process.platform === "linux" ? () => uptime() * 1000 : () => performance.now();

export type SteadyClock = (() => number) & {
  /** Looks whether the machine has slept. Reading the clock does not, since that must cost nothing. */
  refresh(): void;
};

export function createSteadyClock(up = awakeAndAsleep, awake = () => performance.now()): SteadyClock {
  const base = up() - awake();
  let slept = 0;
  const refresh = () => {
    const gap = up() - awake() - base;
    if (gap - slept > TOLERANCE_MS) slept = gap;
  };
  return Object.assign(() => awake() + slept, { refresh });
}

/** That of this process. */
export const steadyClock = createSteadyClock();
