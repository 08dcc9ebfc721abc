/** The code that moved-clock.ts loads into a service. */
import { readFileSync } from "node:fs";

const file = process.env.MOVED_CLOCK ?? "";
for (const clock of [Date, performance]) {
  const now = clock.now.bind(clock);
  clock.now = () => now() + Number(readFileSync(file, "utf8"));
}
