/**
 * The connections to Redis, and how they behave when Redis fails.
 *
 * - A command waits `commandTimeoutMs` at most (send.ts). Without a connection, a command fails at once. A connection on which a
 *   command gets no reply for twice that time is closed, and its commands fail (silence.ts).
 * - A command without a reply is not sent again. Every script could be run twice without harm, but the second run of a logout would find
 *   that the session has ended, and fail. The caller learns that the outcome is unknown, and decides whether to retry.
 * - Reconnecting goes on indefinitely, with pauses of at most a second, so that the service is available as soon as Redis is. It goes on
 *   even if ioredis has stopped reconnecting, which happens when a failover is announced while ioredis connects.
 * - The nodes of a cluster are connected as soon as they are known, replicas too: one of them may be the next master. A command for a
 *   node that is still connecting waits for it; ioredis would otherwise refuse the first commands for each node.
 */
import type { Socket } from "node:net";
import { AbstractConnector, Cluster, Command, Redis, type RedisOptions } from "ioredis";
import type { RedisTarget } from "../../../config/redis-url.ts";
import { TAGS } from "../partitions.ts";
import { type Access, createAccess } from "./access.ts";
import { type LogLine, reportCauses } from "./failure.ts";
import { MasterConnector } from "./sentinels.ts";
import { giveUpWhenSilent } from "./silence.ts";

export type Client = Redis | Cluster;

const CONNECT_TIMEOUT_MS = 2_000;

/** How often the nodes of a cluster are looked up, in ms, so that nodes are connected before they are needed. */
const SLOTS_REFRESH_INTERVAL_MS = 2_000;

/**
 * ioredis listens for the first error of a socket only. After a certificate that is not accepted, the server's alert may be a second one,
 * which would end the process. So every socket of ioredis gets a listener for it, also those that ioredis opens by itself.
 */
const sockets = new WeakMap<AbstractConnector, Socket>();
Object.defineProperty(AbstractConnector.prototype, "stream", {
  get(this: AbstractConnector) {
    return sockets.get(this);
  },
  set(this: AbstractConnector, socket: Socket) {
    sockets.set(
      this,
      socket.on("error", () => {}),
    );
  },
});

function backoff(attempt: number): number {
  return Math.min(25 * 2 ** Math.min(attempt, 10), 1_000) * (0.75 + Math.random() / 4);
}

/** Reconnects a client after its connection was closed, unless this process closed it. */
function revive(this: Client): void {
  setTimeout(() => {
    if (this.status === "end" && !isAbandoned(this)) this.connect().catch(() => {});
  }, backoff(3)).unref();
}

export function disconnect(client: Client): void {
  client.off("end", revive);
  client.disconnect();
}

const isAbandoned = (client: Client) => !client.listeners("end").includes(revive);

/** Prepares the client of one server for the case that the server falls silent, is demoted to a replica, or refuses a database. */
function guard(client: Redis, commandTimeoutMs: number): void {
  giveUpWhenSilent(client, commandTimeoutMs);
  let isLeaving = false;
  // A server that was demoted refuses all commands in flight. The first refusal makes the client look for the new master.
  client.options.reconnectOnError = ({ message }) => {
    if (isLeaving || !message.startsWith("READONLY")) return false;
    isLeaving = true;
    return true;
  };
  client.on("close", () => (isLeaving = false));
  // ioredis would use database 0 then, in which there are no sessions: every user would be logged out.
  client.on("error", (error: Error & { readonly command?: Command }) => {
    if (error.command?.name === "select") client.disconnect(true);
  });
}

/** Opens the connections of one store, which share their credentials and files. */
export type RedisConnections = {
  /** Connects to Redis. A client of a cluster connects to every node. */
  connect(): Client;
  /** Connects to one node of a cluster, and again whenever that connection is lost. */
  connectNode(node: Redis): Redis;
  /** Creates a connection for a subscription. Redis sends on it only when there is a message, so its silence is no failure. */
  connectSubscriber(client: Redis): Redis;
  /** Stops following the files. The connections stay open. */
  close(): void;
};

/** @param commandTimeoutMs ms @throws if a file of the target cannot be used */
export function createRedisConnections(
  target: RedisTarget,
  commandTimeoutMs: number,
  log: LogLine = () => {},
): RedisConnections {
  const access = createAccess(target, commandTimeoutMs, log);
  const use = (client: Redis) => {
    guard(client, commandTimeoutMs);
    access.grant(client);
  };
  return {
    connect() {
      const client = createClient(target, access, commandTimeoutMs);
      if (client instanceof Redis) use(client);
      else {
        access.grantSubscriber(client);
        reportCauses(client);
        client.on("+node", (node: Redis) => {
          use(node);
          node.connect().catch(() => {});
        });
      }
      return client.on("end", revive);
    },
    connectNode(node) {
      const own = node.duplicate({ lazyConnect: false, readOnly: false, retryStrategy: backoff } as RedisOptions);
      use(own);
      return own.on("end", revive);
    },
    connectSubscriber(client) {
      const own = client.duplicate();
      access.grant(own);
      // A server that was replaced or demoted keeps the subscription open. So it moves together with the client.
      const move = () => {
        if (!leave()) own.disconnect(true);
      };
      const leave = () => isAbandoned(own) && client.off("close", move);
      client.on("close", move);
      return own.on("end", revive).on("end", leave);
    },
    close: access.close,
  };
}

/** Returns the name under which a cluster's client knows a node. */
export function nodeKey({ options }: Redis): string {
  return `${options.host}:${options.port}`;
}

/** Returns the node that serves the slot of a hash tag, if it is known. */
export function masterOf(cluster: Cluster, tag: string): string | undefined {
  return cluster.slots[slotOf(tag)]?.[0];
}

/** Returns the nodes that serve the service's partitions, if they are known. */
export function mastersOf(cluster: Cluster): readonly string[] {
  return [...new Set(TAGS.map((tag) => masterOf(cluster, tag) ?? "a slot that no node is known to serve"))];
}

const slots = new Map<string, number>();

function slotOf(tag: string): number {
  const slot = slots.get(tag) ?? Number(new Command("get", [tag]).getSlot());
  slots.set(tag, slot);
  return slot;
}

function createClient(target: RedisTarget, access: Access, commandTimeoutMs: number): Client {
  const { host, port } = target.nodes[0];
  const common = {
    ...access.options(),
    db: target.db,
    disableClientInfo: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    // script-runner.ts checks whether Redis is ready. ioredis checks only a master that Sentinel names: it may have been demoted.
    enableReadyCheck: target.kind === "sentinel",
    maxLoadingRetryTime: 250,
    enableOfflineQueue: false,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    maxRetriesPerRequest: 0,
  };
  if (target.kind === "single") return new Redis({ ...common, retryStrategy: backoff, host, port });
  if (target.kind === "sentinel") {
    return new Redis({
      ...common,
      retryStrategy: backoff,
      sentinels: target.nodes.map((node) => ({ ...node })),
      name: target.master ?? "",
      enableTLSForSentinelMode: target.tls,
      ...access.sentinelOptions(),
      sentinelCommandTimeout: commandTimeoutMs,
      sentinelRetryStrategy: backoff,
      sentinelReconnectStrategy: backoff,
      failoverDetector: true,
      Connector: MasterConnector as never,
    });
  }
  return new Cluster([...target.nodes], {
    // Commands may wait in the client while a node is connecting. While the whole cluster is unavailable, script-runner.ts sends none.
    enableOfflineQueue: true,
    enableReadyCheck: false,
    clusterRetryStrategy: backoff,
    // Each connection looks up the name itself: otherwise the certificate would be compared with an address.
    dnsLookup: (host, done) => done(null, host),
    slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
    slotsRefreshInterval: SLOTS_REFRESH_INTERVAL_MS,
    // A command follows its slot to another node, but its retries take no longer than the timeout of a command.
    maxRedirections: 4,
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: commandTimeoutMs / 4,
    redisOptions: common,
  });
}
