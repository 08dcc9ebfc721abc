/** Gauges of the subscriptions to signals. They are read from the store, so every instance exposes the same values. */
import { kept } from "./kept.ts";
import type { Metrics } from "./metrics.ts";

/** A subscription, as `overseeSubscriptions` (signals/manage.ts) returns it. */
type Overseen = {
  readonly subscription: {
    readonly kind: string;
    readonly state: string;
    readonly because?: string;
    readonly deadLetters: number;
  };
  readonly condition: string;
  /** In ms since the epoch; undefined if nothing waits. */
  readonly oldestWaitingAt: number | undefined;
  readonly waiting: number;
};

/** For how long the state of the subscriptions is reused, in ms. It is read only when the metrics are read. */
const STATE_LIFE_MS = 10_000;

export function exposeSignals(
  { gauge }: Pick<Metrics, "gauge">,
  oversee: () => Promise<readonly Overseen[]>,
  clock = Date.now,
): void {
  const read = kept(oversee, STATE_LIFE_MS, clock);
  /** Adds a gauge with one series for each kind and condition of subscriptions. */
  const add = (name: string, help: string, measure: (one: Overseen) => number, combine = sum) =>
    gauge(
      name,
      help,
      async () =>
        [...Map.groupBy((await read()) ?? [], keyOf).values()].map((group) => ({
          labels: labelsOf(group[0] as Overseen),
          value: combine(group.map(measure)),
        })),
      "max",
    );
  add("session_signal_subscriptions", "Subscriptions to signals", () => 1);
  add("session_signals_waiting", "Signals that wait, at most: filters may exclude some", ({ waiting }) => waiting);
  const age = ({ oldestWaitingAt: at }: Overseen) => (at === undefined ? 0 : Math.max(0, clock() - at) / 1000);
  const longest = (values: readonly number[]) => Math.max(...values);
  add(
    "session_signal_oldest_waiting_seconds",
    "How long ago the session ended whose signal waits longest",
    age,
    longest,
  );
  const givenUp = ({ subscription: { deadLetters } }: Overseen) => deadLetters;
  add("session_signals_given_up", "Signals that were given up or lost, of the subscriptions that exist", givenUp);
}

const labelsOf = ({ subscription: { kind, because }, condition }: Overseen) => ({
  ...{ kind, state: condition },
  ...(because !== undefined && { because }),
});
const keyOf = (one: Overseen) => Object.values(labelsOf(one)).join(" ");
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
