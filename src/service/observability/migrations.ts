import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";

/** How long a fault is not logged again, in ms: every request at that time would log it. */
const QUIET_MS = 10_000;

/** Reports to the log and the metrics how sessions of another system are migrated. */
export function migrationReports(
  log: Pick<Logger, "warn">,
  metrics: Pick<Metrics, "migrated">,
  clock: () => number = () => performance.now(),
) {
  let logged = { fault: "", at: Number.NEGATIVE_INFINITY };
  return {
    onResult: metrics.migrated,
    /** @param fault a few words, without anything of the old session */
    onFailure(cookieName: string, fault: string): void {
      metrics.migrated("failed");
      if (fault === logged.fault && clock() - logged.at < QUIET_MS) return;
      logged = { fault, at: clock() };
      log.warn(
        { event: "migration_failed", cookieName, reason: fault },
        "the application has not said whose an old session is",
      );
    },
  };
}
