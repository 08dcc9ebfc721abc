import { expect, test } from "vitest";
import type { MetricValues } from "../../src/observability/metrics.ts";
import { MetricsRounds } from "../../src/workers/metrics-round.ts";

const counted = (value: number) =>
  [
    { name: "calls_total", help: "Calls.", type: "counter", aggregator: "sum", values: [{ value, labels: {} }] },
  ] as unknown as readonly MetricValues[];

test("the counts of workers that end together are all kept", async () => {
  const rounds = new MetricsRounds();
  rounds.report(1, 0, counted(10));
  rounds.report(2, 0, counted(5));
  await Promise.all([rounds.end(1), rounds.end(2)]);
  const [ended = []] = await rounds.collect([3], (worker, round) => rounds.report(worker, round, counted(0)));
  expect(ended).toMatchObject([{ name: "calls_total", values: [{ value: 15 }] }]);
});
