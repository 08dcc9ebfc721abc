/**
 * Moves `Date.now` and `performance.now` by the offset in a file, which the test writes (moved-clock.ts). Services under test load this
 * module before their own code.
 */
import { readFileSync } from "node:fs";

const file = process.env.MOVED_CLOCK ?? "";
for (const clock of [Date, performance]) {
  const now = clock.now.bind(clock);
  clock.now = () => now() + Number(readFileSync(file, "utf8"));
}
