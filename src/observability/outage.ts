import type { Logger } from "./logger.ts";

/** How long the same trouble is not told again, ms: every request of an outage has it. */
const QUIET = 10_000;

/** Tells of a store that cannot answer: each kind of trouble at once, and again while it lasts. */
export function outageLog(log: Pick<Logger, "error">, clock: () => number = Date.now): (error: Error) => void {
  const told = new Map<string, number>();
  return (error) => {
    const now = clock();
    if (now - (told.get(error.message) ?? Number.NEGATIVE_INFINITY) < QUIET) return;
    if (told.size >= 100) told.clear();
    told.set(error.message, now);
    log.error({ event: "store_unavailable", fault: error.message }, "store_unavailable");
  };
}
