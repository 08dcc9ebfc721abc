/** Reports to the log and the metrics how signals, which tell receivers that a session has ended, are delivered. */
import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";

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
    onFailure(err: unknown) {
      log.warn({ event: "signals_delayed", err }, "signals wait, and are tried again");
    },
  };
}
