/** Computes the needs of a load with formulas, each of which docs/why/capacity.md explains. */
import type { Costs } from "./costs.ts";

export type Demand = {
  readonly refreshesPerSecond: number;
  /** The number of live sessions, in use or not. */
  readonly sessions: number;
  /** The number of processes that watch the feed. */
  readonly verifiers: number;
  readonly creationsPerSecond: number;
  /** How many sessions are ended per second, by logout, revocation or replacement, before they expire. */
  readonly endingsPerSecond: number;
};

export type Plan = {
  /** The share of a core that the plan uses, 0 to 1. The rest is a reserve for the loss of a zone, and for bursts. */
  readonly use: number;
  /** The number of copies of each Redis node, including the node itself. */
  readonly copies: number;
  /** The memory of a Redis node as a multiple of its data. It includes fragmentation, and pages that are copied while Redis saves. */
  readonly overhead: number;
  readonly nodeMemoryGiB: number;
  readonly watchersPerInstance: number;
  readonly accessTokenLifeS: number;
  readonly usdPerCoreMonth: number;
  readonly usdPerGiBMonth: number;
};

export const PLAN: Plan = {
  use: 0.5,
  copies: 2,
  overhead: 1.5,
  nodeMemoryGiB: 24,
  watchersPerInstance: 1_000,
  accessTokenLifeS: 300,
  usdPerCoreMonth: 25,
  usdPerGiBMonth: 3,
};

/**
 * The feed sends this many heartbeats per second to each watcher. With heartbeats and revocations together, a watcher gets at most
 * `MAX_MESSAGES_PER_SECOND`.
 */
const HEARTBEATS_PER_SECOND = 2;
const MAX_MESSAGES_PER_SECOND = 40;
/** The number of partitions in Redis (src/service/store/redis/partitions.ts). A cluster can have no more nodes that share the load. */
export const PARTITIONS = 256;
/** For how long a revocation is kept beyond the life of an access token, in seconds. */
const MARGIN_S = 60;
/** The memory of one revocation in each instance, in bytes, as V8 stores it. */
const BYTES_PER_REVOCATION = 250;
const GIB = 2 ** 30;
export const INSTANCE_GIB = 0.5;

export type Needs = {
  readonly instances: number;
  /**
   * The number of cores that requests keep busy, without a reserve. `feedCores` is the number of cores that the revocation feed keeps busy.
   */
  readonly requestCores: number;
  readonly feedCores: number;
  /** How many nodes of Redis share the load, without replicas. 1 means that there is no cluster. */
  readonly redisNodes: number;
  readonly redisCores: number;
  readonly redisGiB: number;
  readonly instanceGiB: number;
  readonly clientGbits: number;
  readonly redisGbits: number;
  readonly usdPerMonth: number;
  /** The reasons why one deployment cannot serve this load; empty if it can. */
  readonly beyond: readonly string[];
};

/** Returns how many cores all instances together use. */
export function instanceCores(
  demand: Demand,
  costs: Pick<Costs, "instance">,
): { readonly requests: number; readonly feed: number } {
  const { instance } = costs;
  const requests =
    demand.refreshesPerSecond * instance.refresh +
    demand.creationsPerSecond * instance.creation +
    demand.endingsPerSecond * instance.ending;
  return { requests: requests / 1e6, feed: (demand.verifiers * messagesPerSecond(demand) * instance.message) / 1e6 };
}

/** Returns how many messages one watcher gets per second. */
const messagesPerSecond = ({ endingsPerSecond }: Demand): number =>
  Math.min(HEARTBEATS_PER_SECOND + endingsPerSecond, MAX_MESSAGES_PER_SECOND);

/** Returns how many cores all nodes of Redis together use. */
export function redisCores(demand: Demand, costs: Costs, instances: number, isCluster: boolean): number {
  const { redis } = costs;
  const scripts =
    demand.refreshesPerSecond * redis.refresh +
    demand.creationsPerSecond * redis.creation +
    demand.endingsPerSecond * (redis.ending + instances * redis.reading);
  return (scripts + instances * (isCluster ? redis.restOfCluster : redis.rest)) / 1e6;
}

export function needs(demand: Demand, costs: Costs, plan: Plan = PLAN): Needs {
  const { requests, feed } = instanceCores(demand, costs);
  // The share of a core that every instance needs by itself: for being idle, and for reading the revocation log. More instances do not
  // reduce it.
  const own = (costs.instance.rest + demand.endingsPerSecond * costs.instance.reading) / 1e6;
  const ofEach = Math.max(plan.use - own, 0.01);
  const instances = Math.max(
    2,
    Math.ceil((requests + feed) / ofEach),
    Math.ceil(demand.verifiers / plan.watchersPerInstance),
  );
  const redisGiB = (demand.sessions * costs.memory.session * plan.overhead) / GIB;
  const nodesFor = (cores: number) => Math.ceil(Math.max(cores / plan.use, redisGiB / plan.nodeMemoryGiB));
  const alone = redisCores(demand, costs, instances, false);
  const isCluster = nodesFor(alone) > 1;
  const ofRedis = isCluster ? redisCores(demand, costs, instances, true) : alone;
  const redisNodes = Math.max(1, nodesFor(ofRedis));
  const remembered = demand.endingsPerSecond * (plan.accessTokenLifeS + MARGIN_S) * BYTES_PER_REVOCATION;
  const instanceGiB = INSTANCE_GIB + remembered / GIB;
  const cores = instances + redisNodes * plan.copies;
  const memory = instances * instanceGiB + redisGiB * plan.copies;
  const perWatcher = messagesPerSecond(demand) * costs.bytes.message;
  return {
    instances,
    requestCores: requests,
    feedCores: feed,
    redisNodes,
    redisCores: ofRedis,
    redisGiB: redisGiB * plan.copies,
    instanceGiB,
    clientGbits: gbits(demand.refreshesPerSecond * costs.bytes.refresh + demand.verifiers * perWatcher),
    redisGbits: gbits(demand.refreshesPerSecond * costs.bytes.refreshAtRedis),
    usdPerMonth: cores * plan.usdPerCoreMonth + memory * plan.usdPerGiBMonth,
    beyond: beyond(redisNodes, instanceGiB, instances, own),
  };
}

const gbits = (bytesPerSecond: number) => (bytesPerSecond * 8) / 1e9;

/**
 * How many connections a node of Redis accepts by default (`maxclients`). Each instance has one for commands and one for notifications
 * (hints).
 */
const MAX_CLIENTS = 10_000;
/** The largest share of a core that an instance may spend on reading the log. */
const MAX_OWN = 0.25;

function beyond(nodes: number, instanceGiB: number, instances: number, own: number): string[] {
  const limits: string[] = [];
  if (nodes > PARTITIONS)
    limits.push(`${Math.ceil(nodes / PARTITIONS)} cells: a cluster has at most ${PARTITIONS} nodes`);
  if (instanceGiB > 2) limits.push("every instance remembers every revocation: shorter access tokens, or cells");
  if (own > MAX_OWN) limits.push("cells: each instance is busy with reading all endings");
  if (2 * instances > MAX_CLIENTS) limits.push(`cells: more than ${MAX_CLIENTS} connections to each node`);
  return limits;
}
