/** Signals in Redis: each partition has a log and the cursors of its readers, the first one also has the subscriptions. */
import { DEFAULT_RETENTION_MS, type SignalStore } from "../../signals/ports.ts";
import type { Link } from "./link.ts";
import type { Acknowledge } from "./replicas.ts";
import { createSignalLog } from "./signal-log.ts";
import { createSubscriptions } from "./subscriptions.ts";

export function createSignals(
  link: Pick<Link, "run">,
  acknowledge: Acknowledge,
  clustered: boolean,
  retentionMs: number = DEFAULT_RETENTION_MS,
): SignalStore {
  const log = createSignalLog(link, clustered, retentionMs);
  return { log, subscriptions: createSubscriptions(link, acknowledge, log, retentionMs) };
}
