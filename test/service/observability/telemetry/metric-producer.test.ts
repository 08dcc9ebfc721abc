/** The conversion of Prometheus metrics to those of OpenTelemetry. */
import { resourceFromAttributes } from "@opentelemetry/resources";
import { expect, test } from "vitest";
import type { MetricValues } from "../../../../src/service/observability/metrics.ts";
import { createMetricProducer } from "../../../../src/service/observability/telemetry/metric-producer.ts";

const NAME = "waits_seconds";
const rpc = "Refresh";
const bucket = (le: string | number, value: number) => ({ metricName: `${NAME}_bucket`, labels: { le, rpc }, value });

test("a histogram has its buckets one by one, its sum and its count", async () => {
  const values = [
    ...[bucket(0.1, 2), bucket(0.5, 5), bucket("+Inf", 7)],
    { metricName: `${NAME}_sum`, labels: { rpc }, value: 3.5 },
    { metricName: `${NAME}_count`, labels: { rpc }, value: 7 },
  ];
  const family: MetricValues = { name: NAME, help: "Waits.", type: "histogram", values };
  const { resourceMetrics } = await createMetricProducer(async () => [family], resourceFromAttributes({})).collect();
  const [metric] = resourceMetrics.scopeMetrics.flatMap(({ metrics }) => metrics);
  expect(metric?.descriptor).toMatchObject({ name: NAME, description: "Waits.", unit: "s" });
  expect(metric?.dataPoints).toMatchObject([
    {
      attributes: { rpc },
      value: { buckets: { boundaries: [0.1, 0.5], counts: [2, 3, 2] }, sum: 3.5, count: 7 },
    },
  ]);
});
