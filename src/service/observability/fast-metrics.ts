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
    const [firstName, secondName] = this.#options.labelNames;
    const count = {
      labels: { [firstName]: first, ...(secondName !== undefined && { [secondName]: second }) },
      value: 0,
    };
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

/** The series of one combination of labels. */
export class Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly #bounds: readonly number[];
  /** The counts by bucket; the last bucket has no bound. They are not cumulative. */
  readonly #counts: Float64Array;
  #sum = 0;

  constructor(labels: Readonly<Record<string, string>>, bounds: readonly number[]) {
    this.labels = labels;
    this.#bounds = bounds;
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    let bucket = 0;
    while (bucket < this.#bounds.length && value > (this.#bounds[bucket] as number)) bucket++;
    (this.#counts[bucket] as number)++;
    this.#sum += value;
  }

  values(name: string): MetricValue<string>[] {
    const values: (MetricValue<string> & { metricName: string })[] = [];
    let count = 0;
    for (const [bucket, own] of this.#counts.entries()) {
      count += own;
      const le = this.#bounds[bucket] ?? "+Inf";
      values.push({ metricName: `${name}_bucket`, labels: { le, ...this.labels }, value: count });
    }
    values.push({ metricName: `${name}_sum`, labels: this.labels, value: this.#sum });
    values.push({ metricName: `${name}_count`, labels: this.labels, value: count });
    return values;
  }
}

type HistogramOptions = { readonly name: string; readonly help: string; readonly buckets: readonly number[] };

/** A histogram. It takes 0.04 µs instead of 0.35 to observe a value, twice in a refresh. */
export class FastHistogram {
  readonly name: string;
  readonly #options: HistogramOptions;
  readonly #series: Series[] = [];

  constructor(options: HistogramOptions, registry: Registry) {
    this.name = options.name;
    this.#options = options;
    // The types of the registry accept only the library's own classes, but it only reads `name` and calls `get`.
    registry.registerMetric(this as unknown as Parameters<Registry["registerMetric"]>[0]);
  }

  /** Adds a combination of labels. The caller keeps the returned series and passes its observations to it. */
  series(labels: Readonly<Record<string, string>>): Series {
    const series = new Series(labels, this.#options.buckets);
    this.#series.push(series);
    return series;
  }

  async get() {
    const { name, help } = this.#options;
    const values = this.#series.flatMap((series) => series.values(name));
    return { name, help, type: "histogram", aggregator: "sum", values };
  }
}
