/**
 * A counter and a histogram for what happens in every request. prom-client builds a text from the labels for each value, even if its caller
 * keeps `labels(…)`. These allocate nothing.
 */
import type { MetricValue, Registry } from "prom-client";

type CounterOptions = { readonly name: string; readonly help: string; readonly labelNames: readonly [string, string?] };

type Count = { readonly labels: Readonly<Record<string, string>>; value: number };

/**
 * A counter with one or two labels. It finds the value by the labels themselves: a flood of bad credentials increments four counters per
 * request.
 */
export class FastCounter {
  readonly name: string;
  readonly #options: CounterOptions;
  readonly #counts = new Map<string, Map<string, Count>>();

  constructor(options: CounterOptions, registry: Registry) {
    this.name = options.name;
    this.#options = options;
    // The types of the registry accept only the library's own classes, but it only reads `name` and calls `get`.
    registry.registerMetric(this as unknown as Parameters<Registry["registerMetric"]>[0]);
  }

  /** @param second the value of the second label, if there is one */
  inc(first: string, second = ""): void {
    const count = this.#counts.get(first)?.get(second) ?? this.#add(first, second);
    count.value++;
  }

  #add(first: string, second: string): Count {
    const count = { labels: labelsOf(this.#options, first, second), value: 0 };
    const bySecond = this.#counts.get(first) ?? new Map<string, Count>();
    this.#counts.set(first, bySecond.set(second, count));
    return count;
  }

  async get() {
    const { name, help } = this.#options;
    const values = [...this.#counts.values()].flatMap((bySecond) => [...bySecond.values()]);
    return { name, help, type: "counter", aggregator: "sum", values };
  }
}

type HistogramOptions = CounterOptions & { readonly buckets: readonly number[] };

/** The counts of one combination of labels by bucket, not cumulative; the last bucket has no bound. */
type Series = { readonly labels: Readonly<Record<string, string>>; readonly counts: Float64Array; sum: number };

/** A histogram with one or two labels. It takes 0.04 µs instead of 0.35 to observe a value, twice in a refresh. */
export class FastHistogram {
  readonly name: string;
  readonly #options: HistogramOptions;
  readonly #series = new Map<string, Map<string, Series>>();

  constructor(options: HistogramOptions, registry: Registry) {
    this.name = options.name;
    this.#options = options;
    // The types of the registry accept only the library's own classes, but it only reads `name` and calls `get`.
    registry.registerMetric(this as unknown as Parameters<Registry["registerMetric"]>[0]);
  }

  /** @param second the value of the second label; empty if there is none */
  readonly observe = (first: string, second: string, value: number): void => {
    const series = this.#series.get(first)?.get(second) ?? this.#add(first, second);
    const { buckets } = this.#options;
    let bucket = 0;
    while (bucket < buckets.length && value > (buckets[bucket] as number)) bucket++;
    (series.counts[bucket] as number)++;
    series.sum += value;
  };

  #add(first: string, second: string): Series {
    const labels = labelsOf(this.#options, first, second);
    const series = { labels, counts: new Float64Array(this.#options.buckets.length + 1), sum: 0 };
    const bySecond = this.#series.get(first) ?? new Map<string, Series>();
    this.#series.set(first, bySecond.set(second, series));
    return series;
  }

  async get() {
    const { name, help } = this.#options;
    const all = [...this.#series.values()].flatMap((bySecond) => [...bySecond.values()]);
    return { name, help, type: "histogram", aggregator: "sum", values: all.flatMap((one) => this.#valuesOf(one)) };
  }

  #valuesOf({ labels, counts, sum }: Series): MetricValue<string>[] {
    const { name, buckets } = this.#options;
    const values: (MetricValue<string> & { metricName: string })[] = [];
    let count = 0;
    for (const [bucket, own] of counts.entries()) {
      count += own;
      values.push({
        metricName: `${name}_bucket`,
        labels: { le: buckets[bucket] ?? "+Inf", ...labels },
        value: count,
      });
    }
    values.push({ metricName: `${name}_sum`, labels, value: sum });
    values.push({ metricName: `${name}_count`, labels, value: count });
    return values;
  }
}

function labelsOf({ labelNames: [firstName, secondName] }: CounterOptions, first: string, second: string) {
  return { [firstName]: first, ...(secondName !== undefined && { [secondName]: second }) };
}
