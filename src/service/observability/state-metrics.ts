/** Gauges of the state of an instance, its store and the subscriptions in it. They are read when they are exposed. */
import { setTimeout as sleep } from "node:timers/promises";
import type { FeedState } from "../session/feed/feed.ts";
import type { Metrics } from "./metrics.ts";

const LISTENERS = ["public", "admin"] as const;

type ListenerState = { connections(): number; readonly maxConnections: number };
/** @param since when the key entered its state, in ms since the epoch */
type KeyState = { readonly kind: string; readonly state: string; readonly since: number };

export type StateSources = {
  readonly listeners: { readonly public: ListenerState; readonly admin: ListenerState };
  readonly feed: { state(): FeedState };
  readonly ring: { readonly current: { readonly states: readonly KeyState[] } };
  readonly opened: { readonly kind: string; readonly store: { count(): Promise<number> } };
  readonly isReady: () => Promise<boolean>;
  /** Returns the time in ms since the epoch. */
  readonly clock?: () => number;
};

/** For how long a count of all sessions is reused, in ms. Sessions are counted only when the metrics are read. */
const COUNT_LIFE_MS = 60_000;

export function exposeState({ gauge }: Pick<Metrics, "gauge">, sources: StateSources): void {
  const { listeners, feed, ring, opened, isReady, clock = Date.now } = sources;
  const sessions = kept(() => opened.store.count(), COUNT_LIFE_MS, clock);
  gauge("session_active_sessions", "Live sessions in the store, about", async () => only(await sessions()), "max");
  gauge("session_open_connections", "Open connections", () =>
    LISTENERS.map((listener) => ({ labels: { listener }, value: listeners[listener].connections() })),
  );
  gauge("session_max_connections", "How many connections may be open", () =>
    LISTENERS.map((listener) => ({ labels: { listener }, value: listeners[listener].maxConnections })),
  );
  gauge("session_feed_watchers", "Watches of the revocation feed", () => only(feed.state().watchers));
  gauge("session_feed_entries", "Revocations that the feed holds in memory", () => only(feed.state().entries), "max");
  gauge(
    "session_feed_age_seconds",
    "How long ago the revocation log was last read",
    () => {
      const { ageMs } = feed.state();
      return only(ageMs === undefined ? undefined : ageMs / 1000);
    },
    "max",
  );
  gauge(
    "session_key_age_seconds",
    "How long the oldest key of a kind has been in a state",
    () => ages(ring.current.states, clock()),
    "max",
  );
  const unready = kept(async () => Number(!(await isReady())), 0, clock);
  gauge("session_unready", "1 while /readyz responds 503", async () => only(await unready()), "max");
  gauge("session_store_info", "The kind of the store", () => [{ labels: { kind: opened.kind }, value: 1 }], "max");
}

/** @param endsAt returns when the certificate ends that both listeners serve, in ms since the epoch */
export function exposeCertificate({ gauge }: Pick<Metrics, "gauge">, endsAt: () => number): void {
  gauge(
    "session_certificate_expiration_timestamp_seconds",
    "When the TLS certificate of a listener, or one of its chain, ends (Unix time)",
    () => LISTENERS.map((listener) => ({ labels: { listener }, value: endsAt() / 1000 })),
    "min",
  );
}

const only = (value: number | undefined) => (value === undefined ? [] : [{ labels: {}, value }]);

function ages(keys: readonly KeyState[], now: number) {
  const oldest = new Map<string, { labels: { kind: string; state: string }; value: number }>();
  for (const { kind, state, since } of keys) {
    const value = Math.max((now - since) / 1000, oldest.get(`${kind} ${state}`)?.value ?? 0);
    oldest.set(`${kind} ${state}`, { labels: { kind, state }, value });
  }
  return [...oldest.values()];
}

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
  kind,
  state: condition,
  ...(because !== undefined && { because }),
});
const keyOf = (one: Overseen) => Object.values(labelsOf(one)).join(" ");
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

/** How long a request for the metrics waits for a value of the store, in ms, so that a stalled store does not delay all others. */
const WAIT_MS = 250;

/** Caches the result of `read`, and reads it again when it is old, in the background if that is slow. It is undefined after a failure. */
function kept<T>(read: () => Promise<T>, lifeMs: number, clock: () => number): () => Promise<T | undefined> {
  let readAt = Number.NEGATIVE_INFINITY;
  let last: T | undefined;
  let reading: Promise<void> | undefined;
  const start = async () => {
    try {
      last = await read();
      readAt = clock();
    } catch {
      last = undefined;
    }
    reading = undefined;
  };
  return async () => {
    if (Math.abs(clock() - readAt) >= lifeMs) {
      reading ??= start();
      await Promise.race([reading, sleep(WAIT_MS, undefined, { ref: false })]);
    }
    return last;
  };
}
