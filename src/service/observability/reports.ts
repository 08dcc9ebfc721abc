import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";

/** How long a fault, or a cause of overload, is not logged again, in ms: every request at that time would log it. */
const QUIET_MS = 10_000;
/** How many different faults are remembered. If there are more, all are forgotten, and may be reported again. */
const MAX_FAULTS = 100;

/** The absolute value is compared, so that the log does not become silent when a clock is set back. */
const isQuiet = (now: number, loggedAt = Number.NEGATIVE_INFINITY) => Math.abs(now - loggedAt) < QUIET_MS;

/** Reports that a store is unavailable. Each kind of fault is logged when it first occurs, and every ten seconds while it continues. */
export function outageLog(log: Pick<Logger, "error">, clock: () => number = Date.now): (error: Error) => void {
  const reportedAt = new Map<string, number>();
  return (error) => {
    const now = clock();
    if (isQuiet(now, reportedAt.get(error.message))) return;
    if (reportedAt.size >= MAX_FAULTS) reportedAt.clear();
    reportedAt.set(error.message, now);
    log.error({ event: "store_unavailable", fault: error.message }, "store_unavailable");
  };
}

/** Reports refusals under overload. The metrics count all of them; the log gets one line per cause every ten seconds. */
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
    if (isQuiet(now, state.loggedAt)) return;
    log.warn({ event: "overloaded", cause, refused: state.refused }, "overloaded");
    state.loggedAt = now;
    state.refused = 0;
  };
}

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

/** Reports to the log and the metrics how signals, which tell receivers that a session has ended, are delivered. */
export function signalReports(log: Pick<Logger, "warn">, metrics: Pick<Metrics, "signalSent">) {
  return {
    onAttempt(kind: string, error: string | undefined, lagMs: number) {
      metrics.signalSent(kind, error ?? "accepted", lagMs / 1000);
    },
    onPause(subscription: string, because: string) {
      log.warn({ event: "signals_paused", subscription, because }, "nothing more is delivered to a subscription");
    },
    onLoss(subscription: string, count: number) {
      log.warn({ event: "signals_lost", subscription, count }, "a subscription fell behind SIGNALS_RETENTION");
    },
    onGivenUp(subscription: string, count: number) {
      log.warn(
        { event: "signals_given_up", subscription, count },
        "a receiver did not accept signals, which are given up",
      );
    },
    onFailure(err: unknown) {
      log.warn({ event: "signals_delayed", err }, "signals wait, and are tried again");
    },
  };
}
