/**
 * A counter and a histogram for what happens in every request. prom-client builds a text from the labels for each value, even if its caller
 * keeps `labels(…)`. These allocate nothing: they find a value by up to two labels themselves.
 */
import type { MetricValue, Registry } from "prom-client";

type Labels = Readonly<Record<string, string>>;
export type MetricOptions = {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly [string?, string?];
};

abstract class FastMetric<Series> {
  readonly name: string;
  protected readonly byLabels = new Map<string, Map<string, Series>>();
  readonly #options: MetricOptions;

  constructor(options: MetricOptions, registry: Registry) {
    this.name = options.name;
    this.#options = options;
    // The types of the registry accept only the library's own classes, but it only reads `name` and calls `get`.
    registry.registerMetric(this as unknown as Parameters<Registry["registerMetric"]>[0]);
  }

  protected abstract create(labels: Labels): Series;

  protected add(first: string, second: string): Series {
    const { labelNames } = this.#options;
    const series = this.create(Object.fromEntries(labelNames.map((name, at) => [name, [first, second][at] as string])));
    const bySecond = this.byLabels.get(first) ?? new Map<string, Series>();
    this.byLabels.set(first, bySecond.set(second, series));
    return series;
  }

  protected expose(type: "counter" | "histogram", valuesOf: (series: Series) => readonly MetricValue<string>[]) {
    const all = [...this.byLabels.values()].flatMap((bySecond) => [...bySecond.values()]);
    const { name, help } = this.#options;
    return { name, help, type, aggregator: "sum", values: all.flatMap(valuesOf) };
  }
}

type Count = { readonly labels: Labels; value: number };

export class FastCounter extends FastMetric<Count> {
  constructor(options: MetricOptions, registry: Registry) {
    super(options, registry);
    if (options.labelNames.length === 0) this.add("", "");
  }

  protected create(labels: Labels): Count {
    return { labels, value: 0 };
  }

  /** @param first the value of the first label, if there is one; `second` likewise */
  inc(first = "", second = "", by = 1): void {
    const count = this.byLabels.get(first)?.get(second) ?? this.add(first, second);
    count.value += by;
  }

  async get() {
    return this.expose("counter", (count) => [count]);
  }
}

/** The counts of one combination of labels by bucket, not cumulative; the last bucket has no bound. */
type Series = { readonly labels: Labels; readonly counts: Float64Array; sum: number };

/** It takes 0.04 µs instead of 0.35 to observe a value, twice in a refresh. */
export class FastHistogram extends FastMetric<Series> {
  readonly #buckets: readonly number[];

  constructor(options: MetricOptions & { readonly buckets: readonly number[] }, registry: Registry) {
    super(options, registry);
    this.#buckets = options.buckets;
  }

  protected create(labels: Labels): Series {
    return { labels, counts: new Float64Array(this.#buckets.length + 1), sum: 0 };
  }

  /** @param second the value of the second label; empty if there is none */
  readonly observe = (first: string, second: string, value: number): void => {
    const series = this.byLabels.get(first)?.get(second) ?? this.add(first, second);
    let bucket = 0;
    while (bucket < this.#buckets.length && value > (this.#buckets[bucket] as number)) bucket++;
    (series.counts[bucket] as number)++;
    series.sum += value;
  };

  async get() {
    return this.expose("histogram", (series) => this.#valuesOf(series));
  }

  #valuesOf({ labels, counts, sum }: Series): MetricValue<string>[] {
    const values: (MetricValue<string> & { metricName: string })[] = [];
    let count = 0;
    for (const [bucket, own] of counts.entries()) {
      count += own;
      const le = this.#buckets[bucket] ?? "+Inf";
      values.push({ metricName: `${this.name}_bucket`, labels: { le, ...labels }, value: count });
    }
    values.push({ metricName: `${this.name}_sum`, labels, value: sum });
    values.push({ metricName: `${this.name}_count`, labels, value: count });
    return values;
  }
}
