/** What the live page of the console shows: of this instance, since it started. */
import type { Metrics } from "../observability/metrics.ts";
import type { RevocationFeed } from "../session/feed.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import { nextStep, type RingTimes } from "../tokens/ring-steps.ts";

/** How long until every instance has a changed ring in force, ms: as `session-service keys` counts with. */
const PICK_UP_MS = 60_000;

type Deps = {
  readonly metrics: Pick<Metrics, "values">;
  readonly feed: Pick<RevocationFeed, "state">;
  readonly ring: Pick<KeyRing, "current" | "lost">;
  readonly times: Omit<RingTimes, "pickUpMs">;
  /** Resolves when the store responds. */
  readonly ready: () => Promise<void>;
};

/** Metrics that the page shows; the others stay where they are. */
const SHOWN = new Set([
  "session_created_total",
  "session_renewed_total",
  "session_ended_total",
  "session_all_ended_total",
  "session_token_reuse_total",
  "session_authn_failed_total",
  "session_rpc_duration_seconds",
  "session_open_streams",
  "process_start_time_seconds",
]);

export async function liveData({ metrics, feed, ring, times, ready }: Deps) {
  const [values, storeResponds] = await Promise.all([
    metrics.values(),
    ready().then(
      () => true,
      () => false,
    ),
  ]);
  return {
    now: Date.now(),
    storeResponds,
    feed: feed.state(),
    ringLost: ring.lost,
    keys: ring.current.states.map(({ kind, ...key }) => {
      const next = nextStep(kind, key, { ...times, pickUpMs: PICK_UP_MS });
      const { kid, alg, state, since } = key;
      return { kind, kid, alg, state, since, ...(next !== undefined && { next }) };
    }),
    metrics: values.filter(({ name }) => SHOWN.has(name)),
  };
}
