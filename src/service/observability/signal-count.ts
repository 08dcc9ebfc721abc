import { Counter, Histogram, type Registry } from "prom-client";

/** The bounds of the buckets in seconds. A receiver that was unavailable accepts its reports of ended sessions hours late. */
const LAG_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 60, 600, 3600, 86_400];

/** Counts attempts to tell a receiver that a session has ended (a signal), and measures how late the accepted signals are. */
export function createSignalCount(registry: Registry): (kind: string, outcome: string, lagSeconds: number) => void {
  const sent = new Counter({
    name: "session_signals_sent_total",
    help: "Attempts to send a signal, by outcome",
    labelNames: ["kind", "outcome"],
    registers: [registry],
  });
  const help = "From the end of a session to when a receiver has accepted its signal";
  const lags = new Histogram({
    ...{ name: "session_signal_lag_seconds", help, buckets: LAG_BUCKETS },
    ...{ labelNames: ["kind"], registers: [registry] },
  });
  return (kind, outcome, lagSeconds) => {
    sent.inc({ kind, outcome });
    // The clock may have been set back. A negative value would make the sum smaller, which looks like a restart.
    if (outcome === "accepted") lags.observe({ kind }, Math.max(0, lagSeconds));
  };
}
