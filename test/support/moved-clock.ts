/**
 * Provides the environment of a service whose clocks the test moves. The wall clock and the monotonic clock move together, as when time
 * passes. The process loads `moved-clock-preload.ts` before its own code (NODE_OPTIONS), and reads the offset from a file whenever it reads
 * a clock.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { scratch } from "./service.ts";

export type MovedClock = {
  /** The environment of the service. */
  readonly env: Readonly<Record<string, string>>;
  /** Advances the clocks of the service, in ms. */
  pass(ms: number): void;
};

export function movedClock(): MovedClock {
  const file = join(scratch(), "clock");
  let offsetMs = 0;
  const pass = (ms: number) => {
    offsetMs += ms;
    writeFileSync(file, String(offsetMs));
  };
  pass(0);
  const preload = join(import.meta.dirname, "moved-clock-preload.ts");
  return { env: { MOVED_CLOCK: file, NODE_OPTIONS: `--import ${preload}` }, pass };
}
