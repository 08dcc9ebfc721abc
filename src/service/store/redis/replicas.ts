/**
 * `REDIS_WAIT_REPLICAS`: a login, an update or an ending is acknowledged after this many replicas have received it.
 *
 * WAIT blocks its connection, so each master has a separate connection for it (shared-wait.ts). On a cluster, this module uses the nodes
 * and the map of the slots that the client of the store knows.
 */

import { Cluster, Redis } from "ioredis";
import type { RedisTarget } from "../../config/redis-url.ts";
import { StoreUnavailable } from "../../session/ports.ts";
import {
  type Client,
  disconnect,
  masterOf,
  mastersOf,
  nodeKey,
  type RedisConnections,
} from "./connection/connection.ts";
import { translate } from "./connection/failure.ts";
import { createCommandSender } from "./connection/send.ts";
import { createSharedWait, type SharedWait } from "./shared-wait.ts";

type Deps = {
  readonly target: Pick<RedisTarget, "keyPrefix">;
  readonly waitReplicas: number;
  readonly commandTimeoutMs: number;
};

/**
 * Waits until enough replicas have received a write to the partition with this tag.
 *
 * @param evidence keys without the tag, one of which exists after the write; empty if the write changed nothing
 * @throws StoreUnavailable if too few replicas have received the write in time, or this master lacks it. The write may persist nevertheless
 */
export type Acknowledge = (tag: string, evidence?: readonly string[]) => Promise<void>;

export type Replicas = {
  readonly acknowledge: Acknowledge;
  /** Resolves when every master has a connection for WAIT. */
  readonly ready: Promise<void>;
  /** @throws StoreUnavailable while a master has no connection for WAIT */
  check(): void;
  close(): void;
};

const MAX_REDIRECTIONS = 4;

type Channel = { readonly redis: Redis; readonly wait: SharedWait };

export function createReplicas(deps: Deps, connections: RedisConnections, client: Client): Replicas {
  if (deps.waitReplicas === 0) return { acknowledge: async () => {}, ready: Promise.resolve(), check() {}, close() {} };
  const sender = createCommandSender(deps.commandTimeoutMs);
  const { keyPrefix: prefix = "" } = deps.target;
  const ready = Promise.withResolvers<void>();
  const look = () => {
    if (channels.unconnected() === undefined) ready.resolve();
  };
  client.on("ready", look);
  const channel = (redis: Redis): Channel => {
    redis.on("error", () => {}); // Errors are ignored here, because the client of the store reports them.
    redis.on("ready", look);
    return { redis, wait: createSharedWait({ ...deps, redis, send: sender.send }) };
  };
  const channels = client instanceof Cluster ? ofNodes(client, channel, connections) : ofMaster(channel, connections);
  const check = () => {
    const key = channels.unconnected();
    if (key !== undefined) throw new StoreUnavailable(`Redis: no connection to wait for the replicas of ${key}`);
  };
  const acknowledge: Acknowledge = async (tag, evidence = []) => {
    let key = channels.keyOf(tag);
    for (let redirections = 0; ; redirections++) {
      try {
        const known = channels.of(key);
        if (known === undefined) throw new StoreUnavailable("Redis: the master of a slot is not known");
        return await known.wait(prefix + tag, evidence);
      } catch (error) {
        const moved = movedTo(error);
        if (moved === undefined || redirections === MAX_REDIRECTIONS) throw translate(error);
        if (client instanceof Cluster) client.refreshSlotsCache();
        key = moved;
      }
    }
  };
  const close = () => {
    sender.close();
    channels.close();
  };
  return { acknowledge, ready: ready.promise, check, close };
}

/** Returns the node to which a cluster's MOVED error redirects; undefined for other errors. */
function movedTo(error: unknown): string | undefined {
  return error instanceof Error ? /^MOVED \d+ (\S+)$/.exec(error.message)?.[1] : undefined;
}

type Channels = {
  /** Returns a master that has no connection for WAIT, if there is one. */
  unconnected(): string | undefined;
  keyOf(tag: string): string | undefined;
  of(key: string | undefined): Channel | undefined;
  close(): void;
};

function ofMaster(channel: (redis: Redis) => Channel, { connect }: RedisConnections): Channels {
  const client = connect();
  if (!(client instanceof Redis)) throw new TypeError("a cluster has several masters");
  const only = channel(client);
  return {
    unconnected: () => (client.status === "ready" ? undefined : "the master"),
    keyOf: () => "the master",
    of: () => only,
    close: () => disconnect(client),
  };
}

function ofNodes(cluster: Cluster, channel: (redis: Redis) => Channel, { connectNode }: RedisConnections): Channels {
  const channels = new Map<string, Channel>();
  const follow = () => {
    const nodes = new Map(cluster.nodes("all").map((node) => [nodeKey(node), node]));
    for (const [key, { redis }] of channels) {
      if (nodes.has(key)) continue;
      channels.delete(key);
      disconnect(redis);
    }
    for (const [key, node] of nodes) {
      if (!channels.has(key)) channels.set(key, channel(connectNode(node)));
    }
  };
  cluster.on("+node", follow).on("-node", follow);
  const close = () => {
    cluster.off("+node", follow).off("-node", follow);
    for (const { redis } of channels.values()) disconnect(redis);
  };
  const isConnected = (key: string) => channels.get(key)?.redis.status === "ready";
  return {
    unconnected: () => mastersOf(cluster).find((key) => !isConnected(key)),
    keyOf: (tag) => masterOf(cluster, tag),
    of: (key) => channels.get(key ?? ""),
    close,
  };
}
