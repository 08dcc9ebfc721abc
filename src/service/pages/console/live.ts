/** The data of the console's live page. */
import type { RevocationFeed } from "../../session/feed/feed.ts";

type Deps = {
  readonly metrics: { readonly values: () => Promise<readonly { readonly name: string }[]> };
  readonly feed: Pick<RevocationFeed, "state">;
  /** Returns whether the file of the key ring is missing. */
  readonly ringLost: () => boolean;
  /** Returns the keys, each with its possible next steps. */
  readonly keys: () => readonly object[];
  /** Resolves when the store responds. */
  readonly ready: () => Promise<void>;
};

/** The metrics that the page displays. */
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

export async function liveData({ metrics, feed, ringLost, keys, ready }: Deps) {
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
    ringLost: ringLost(),
    keys: keys(),
    metrics: values.filter(({ name }) => SHOWN.has(name)),
  };
}
