/** The log lines and metrics by which operators observe deliveries. */
import { pino } from "pino";
import { expect, test } from "vitest";
import { createMetrics } from "../../../src/service/observability/metrics.ts";
import { signalReports } from "../../../src/service/observability/reports.ts";

test("a receiver that refuses, a loss and a store that is away are logged and counted", async () => {
  const lines: Readonly<Record<string, unknown>>[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const metrics = createMetrics();
  const reports = signalReports(log, metrics);
  reports.onAttempt("webhook", undefined, 20);
  reports.onAttempt("webhook", "refused", 90_000);
  reports.onPause("a1", "receiver");
  reports.onLoss("a1", 3);
  reports.onGivenUp("a1", 2);
  reports.onFailure(new Error("the store is away"));
  expect(lines).toMatchObject([
    { event: "signals_paused", subscription: "a1", because: "receiver" },
    { event: "signals_lost", subscription: "a1", count: 3 },
    { event: "signals_given_up", subscription: "a1", count: 2 },
    { event: "signals_delayed", err: { message: "the store is away" } },
  ]);
  const { body } = await metrics.expose();
  expect(body).toContain('session_signals_sent_total{kind="webhook",outcome="accepted"} 1');
  expect(body).toContain('session_signals_sent_total{kind="webhook",outcome="refused"} 1');
  expect(body).toContain('session_signal_lag_seconds_count{kind="webhook"} 1');
});
