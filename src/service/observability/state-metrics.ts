/** Gauges of the state of an instance and its store. They are read when they are exposed. */
import type { FeedState } from "../session/feed/feed.ts";
import { kept } from "./kept.ts";
import type { Metrics } from "./metrics.ts";

type ListenerState = { connections(): number; readonly maxConnections: number };
/** @param since when the key entered its state, in ms since the epoch */
type KeyState = { readonly kind: string; readonly state: string; readonly since: number };

export type StateSources = {
  readonly listeners: { readonly public: ListenerState; readonly admin: ListenerState };
  readonly feed: { state(): FeedState };
  readonly ring: { readonly current: { readonly states: readonly KeyState[] } };
  readonly opened: { readonly kind: string; readonly store: { count(): Promise<number> } };
  /** Returns the time in ms since the epoch. */
  readonly clock?: () => number;
};

/** For how long a count of all sessions is reused, in ms. Sessions are counted only when the metrics are read. */
const COUNT_LIFE_MS = 60_000;

export function exposeState({ gauge }: Pick<Metrics, "gauge">, sources: StateSources): void {
  const { listeners, feed, ring, opened, clock = Date.now } = sources;
  const names = ["public", "admin"] as const;
  const sessions = kept(() => opened.store.count(), COUNT_LIFE_MS, clock);
  gauge("session_active_sessions", "Live sessions in the store, about", async () => only(await sessions()), "max");
  gauge("session_open_connections", "Open connections", () =>
    names.map((listener) => ({ labels: { listener }, value: listeners[listener].connections() })),
  );
  gauge("session_max_connections", "How many connections may be open", () =>
    names.map((listener) => ({ labels: { listener }, value: listeners[listener].maxConnections })),
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
  gauge("session_store_info", "The kind of the store", () => [{ labels: { kind: opened.kind }, value: 1 }], "max");
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
