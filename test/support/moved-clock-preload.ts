/** Loaded into a service by moved-clock.ts. */
import { readFileSync } from "node:fs";

const file = process.env.MOVED_CLOCK ?? "";
for (const clock of [Date, performance]) {
  const now = clock.now.bind(clock);
  clock.now = () => now() + Number(readFileSync(file, "utf8"));
}
