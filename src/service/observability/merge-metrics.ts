import { AggregatorRegistry } from "prom-client";
import type { MetricValues } from "./metrics.ts";

/** Merges the metrics of several processes into those of one service, each by its aggregator, which is the sum by default. */
export async function mergeMetrics(all: readonly (readonly MetricValues[])[]) {
  // The library's types declare the values as an array of objects without members.
  const registry = AggregatorRegistry.aggregate(all.map((values) => [...values]));
  const values = (await registry.getMetricsAsJSON()) as unknown as MetricValues[];
  return { type: registry.contentType, body: await registry.metrics(), values };
}

/** Returns the metrics that must be kept when a process ends: a counter that decreases would look like a restart of the whole service. */
export function lastingMetrics(values: readonly MetricValues[]): MetricValues[] {
  return values.filter(({ type }) => type === "counter" || type === "histogram");
}
