import type { Metrics } from "../observability/metrics.ts";
import { exposeState as expose } from "../observability/state-metrics.ts";
import type { RevocationFeed } from "../session/feed.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import type { Listeners } from "./open-listeners.ts";
import type { OpenedStore } from "./open-store.ts";

type Parts = {
  readonly listeners: Listeners;
  readonly feed: Pick<RevocationFeed, "state">;
  readonly ring: KeyRing;
  readonly opened: OpenedStore;
};

/** Adds the gauges of an instance. */
export function exposeState(metrics: Metrics, { listeners, feed, ring, opened }: Parts): void {
  const open = (["public", "admin"] as const).map((name) => {
    const listener = listeners[name];
    return { name, open: () => listener.connections(), most: listener.maxConnections };
  });
  expose(metrics, {
    listeners: open,
    feed: () => feed.state(),
    keys: () => ring.current.states,
    countSessions: () => opened.store.count(),
    storeKind: opened.kind,
    clock: Date.now,
  });
}
