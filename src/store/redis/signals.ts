/**
 * Signals in Redis: a log in each partition with the cursors of its readers (lua/partition.lua), and the subscriptions in the first
 * partition.
 */
import { DEFAULT_RETENTION_MS, type SignalStore } from "../../signals/ports.ts";
import type { Link } from "./link.ts";
import type { Acknowledge } from "./replicas.ts";
import { RedisSignalLog } from "./signal-log.ts";
import { RedisSubscriptions } from "./subscriptions.ts";

export function createRedisSignals(
  link: Pick<Link, "run">,
  acknowledge: Acknowledge,
  clustered: boolean,
  retentionMs: number = DEFAULT_RETENTION_MS,
): SignalStore {
  const log = new RedisSignalLog(link, clustered, retentionMs);
  return { log, subscriptions: new RedisSubscriptions(link, acknowledge, log, retentionMs) };
}
