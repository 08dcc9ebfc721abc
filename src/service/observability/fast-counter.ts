/**
 * A counter with one or two labels. prom-client builds a text from the labels for each increment; this one finds the value by the labels
 * themselves, and allocates nothing. That matters because a flood of bad credentials increments four counters per request.
 */
import type { Registry } from "prom-client";

type Options = { readonly name: string; readonly help: string; readonly labelNames: readonly [string, string?] };

type Count = { readonly labels: Readonly<Record<string, string>>; value: number };

export class FastCounter {
  readonly name: string;
  readonly #options: Options;
  readonly #counts = new Map<string, Map<string, Count>>();

  constructor(options: Options, registry: Registry) {
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
