/** Provides the metrics of `/metrics` to the OpenTelemetry SDK, so that both report the same. */
import { type HrTime, ValueType } from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  type CollectionResult,
  DataPointType,
  type MetricData,
  type MetricProducer,
} from "@opentelemetry/sdk-metrics";
import type { MetricValues } from "../metrics.ts";

const SCOPE = { name: "session-service" };

export function createMetricProducer(read: () => Promise<readonly MetricValues[]>, resource: Resource): MetricProducer {
  const startTime = hrTime(Date.now() - performance.now());
  return {
    async collect(): Promise<CollectionResult> {
      const families = await read();
      const times = { startTime, endTime: hrTime(Date.now()) };
      const metrics = families.flatMap((family) => toMetricData(family, times) ?? []);
      return { resourceMetrics: { resource, scopeMetrics: [{ scope: SCOPE, metrics }] }, errors: [] };
    },
  };
}

function hrTime(ms: number): HrTime {
  return [Math.floor(ms / 1000), Math.floor((ms % 1000) * 1e6)];
}

type Times = { readonly startTime: HrTime; readonly endTime: HrTime };

function toMetricData({ name, help, type, values }: MetricValues, times: Times): MetricData | undefined {
  const unit = name.endsWith("_seconds") ? "s" : name.endsWith("_bytes") ? "By" : "1";
  const common = {
    descriptor: { name, description: help, unit, valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  if (type === "histogram") {
    const dataPoints = histograms(name, values).map(([attributes, value]) => ({ ...times, attributes, value }));
    return { ...common, dataPointType: DataPointType.HISTOGRAM, dataPoints };
  }
  const dataPoints = values.map(({ labels, value }) => ({ ...times, attributes: { ...labels }, value }));
  if (type === "counter") return { ...common, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints };
  if (type === "gauge") return { ...common, dataPointType: DataPointType.GAUGE, dataPoints };
  return undefined;
}

type Histogram = { buckets: { boundaries: number[]; counts: number[] }; sum: number; count: number };

/** Collects the histograms of a family by their labels. Prometheus counts cumulatively, OpenTelemetry by bucket. */
function histograms(name: string, values: MetricValues["values"]): [Record<string, string | number>, Histogram][] {
  const found = new Map<string, [Record<string, string | number>, Histogram]>();
  for (const { metricName, labels, value } of values) {
    const { le, ...attributes } = labels;
    const key = JSON.stringify(Object.entries(attributes).sort());
    const known = found.get(key) ?? [attributes, { buckets: { boundaries: [], counts: [] }, sum: 0, count: 0 }];
    found.set(key, known);
    const [, histogram] = known;
    if (metricName === `${name}_sum`) histogram.sum = value;
    else if (metricName === `${name}_count`) histogram.count = value;
    else {
      const { boundaries, counts } = histogram.buckets;
      counts.push(value - counts.reduce((sum, one) => sum + one, 0));
      if (le !== "+Inf") boundaries.push(Number(le));
    }
  }
  return [...found.values()];
}
