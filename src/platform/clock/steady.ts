/** A monotonic clock, in ms from an arbitrary moment: CLOCK_MONOTONIC plus the time in which the machine was asleep. */
import { uptime } from "node:os";

/** The uptime and CLOCK_MONOTONIC may differ by this much without a sleep of the machine, in ms. */
const TOLERANCE_MS = 1_000;

/** Returns how long the machine has been up, including sleep. Only Linux reports this independently of the wall clock. */
const awakeAndAsleep = process.platform === "linux" ? () => uptime() * 1000 : () => performance.now();

export type SteadyClock = (() => number) & {
  /** Checks whether the machine has slept. Reading the clock does not check it, since a reading must cost nothing. */
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

export const steadyClock = createSteadyClock();
