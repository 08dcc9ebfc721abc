import { AggregatorRegistry } from "prom-client";
import type { MetricValues } from "./metrics.ts";

type Merged = { readonly type: string; readonly body: string; readonly values: readonly MetricValues[] };

/** Merges the metrics of several processes into those of one service: each metric by its aggregator, a sum unless it names another. */
export async function mergeMetrics(all: readonly (readonly MetricValues[])[]): Promise<Merged> {
  // The library's types declare the values as an array of objects without members.
  const registry = AggregatorRegistry.aggregate(all.map((values) => [...values]));
  const values = (await registry.getMetricsAsJSON()) as unknown as MetricValues[];
  return { type: registry.contentType, body: await registry.metrics(), values };
}

/** Returns what must not be forgotten when a process ends: a counter that falls looks like a restart of the whole service. */
export function lastingMetrics(values: readonly MetricValues[]): MetricValues[] {
  return values.filter(({ type }) => type === "counter" || type === "histogram");
}
