import type { Logger } from "./logger.ts";

/** How long a fault is not reported again, in ms, because every request during an outage causes the fault. */
const QUIET_MS = 10_000;
/** How many different faults are remembered. If there are more, all are forgotten, and may be reported again. */
const MAX_FAULTS = 100;

/**
 * Reports that a store is unavailable. Each kind of fault is logged when it first occurs, and again every ten seconds while it continues.
 */
export function outageLog(log: Pick<Logger, "error">, clock: () => number = Date.now): (error: Error) => void {
  const reportedAt = new Map<string, number>();
  return (error) => {
    const now = clock();
    if (now - (reportedAt.get(error.message) ?? Number.NEGATIVE_INFINITY) < QUIET_MS) return;
    if (reportedAt.size >= MAX_FAULTS) reportedAt.clear();
    reportedAt.set(error.message, now);
    log.error({ event: "store_unavailable", fault: error.message }, "store_unavailable");
  };
}
