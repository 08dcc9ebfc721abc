import { expect, test } from "vitest";
import { createMetrics } from "../../../src/service/observability/metrics.ts";

test("a clock that was set back does not make the sum of lags smaller", async () => {
  const metrics = createMetrics();
  metrics.signalSent("webhook", "accepted", 2);
  metrics.signalSent("webhook", "accepted", -3_600);
  const { body } = await metrics.expose();
  expect(body).toContain('session_signal_lag_seconds_sum{kind="webhook"} 2');
  expect(body).toContain('session_signal_lag_seconds_count{kind="webhook"} 2');
});
