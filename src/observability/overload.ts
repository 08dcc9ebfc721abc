import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";

/** How long the same cause is not logged again, ms. */
const QUIET_MS = 10_000;

/** Reports refusals under overload: all of them to the metrics, one line per cause and ten seconds to the log. */
export function overloadReport(
  log: Pick<Logger, "warn">,
  metrics: Pick<Metrics, "refused">,
  clock: () => number = Date.now,
): (cause: "store" | "event_loop") => void {
  const causes = { store: { loggedAt: -QUIET_MS, refused: 0 }, event_loop: { loggedAt: -QUIET_MS, refused: 0 } };
  return (cause) => {
    metrics.refused(cause);
    const state = causes[cause];
    const now = clock();
    state.refused++;
    // A clock that is set back must not silence the log.
    if (Math.abs(now - state.loggedAt) < QUIET_MS) return;
    log.warn({ event: "overloaded", cause, refused: state.refused }, "overloaded");
    state.loggedAt = now;
    state.refused = 0;
  };
}
