import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { createSignalCount } from "../../../src/service/observability/signal-count.ts";

test("a clock that was set back does not make the sum of lags smaller", async () => {
  const registry = new Registry();
  const count = createSignalCount(registry);
  count("webhook", "accepted", 2);
  count("webhook", "accepted", -3_600);
  const text = await registry.metrics();
  expect(text).toContain('session_signal_lag_seconds_sum{kind="webhook"} 2');
  expect(text).toContain('session_signal_lag_seconds_count{kind="webhook"} 2');
});
