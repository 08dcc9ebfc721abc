/** Faults of a cluster and of a master under Sentinel, with `REDIS_WAIT_REPLICAS=1`. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type ClusterNode,
  joinCluster,
  type RedisCluster,
  type RedisServer,
  replicate,
  startClusterNode,
  startRedis,
  startReplica,
  startReplicatedCluster,
  startSentinel,
} from "../support/redis.ts";
import { until } from "../support/until.ts";
import { type AnyFault, type Backend, fault, type World } from "./world.ts";

const NODE_ARGS = ["--cluster-node-timeout", "1000", "--appendonly", "yes"];
const WAIT = { REDIS_WAIT_REPLICAS: "1" };

const openCluster = (env: Readonly<Record<string, string>>) => async (): Promise<Backend<RedisCluster>> => {
  const parts = await startReplicatedCluster(...NODE_ARGS);
  return { env: { ...env, REDIS_URL: parts.url }, parts, stop: () => parts.stop() };
};

const onCluster = (name: string, strike: (world: World<RedisCluster>) => Promise<void>): AnyFault =>
  fault<RedisCluster>({ name: `cluster: ${name}`, open: openCluster(WAIT), strike });

const node = (cluster: RedisCluster, at: number) => cluster.nodes[at] as ClusterNode;
const isMaster = async ({ admin }: RedisServer) => (await admin.info("replication")).includes("role:master");
const whenMaster = (server: RedisServer) =>
  until(async () => {
    if (!(await isMaster(server))) throw new Error("not yet");
  });

async function redisCli(...args: readonly string[]): Promise<void> {
  const child = spawn("redis-cli", [...args], { stdio: "ignore" });
  const [code] = (await once(child, "exit")) as [number];
  if (code !== 0) throw new Error(`redis-cli ${args.join(" ")}: ${code}`);
}

/** Moves a third of the slots of node 0 to a master that has just joined, with its replica. */
async function reshard({ parts }: World<RedisCluster>): Promise<void> {
  const [master, replica] = [await startClusterNode(...NODE_ARGS), await startClusterNode(...NODE_ARGS)];
  await joinCluster(parts.nodes, master, replica);
  await replicate(replica, master);
  const [from, to] = await Promise.all([node(parts, 0), master].map(({ admin }) => admin.call("CLUSTER", "MYID")));
  const at = `127.0.0.1:${node(parts, 0).port}`;
  const wanted = ["--cluster-from", `${from}`, "--cluster-to", `${to}`, "--cluster-slots", "1800", "--cluster-yes"];
  await redisCli("--cluster", "reshard", at, ...wanted);
  (parts.nodes as ClusterNode[]).push(master, replica);
}

const plannedFailover = onCluster("planned failover of two masters", async ({ parts }) => {
  for (const at of [0, 1]) {
    const replica = node(parts, at + 3);
    await replica.admin.call("CLUSTER", "FAILOVER");
    await whenMaster(replica);
    await sleep(500);
  }
});

async function unplannedFailover({ parts }: World<RedisCluster>): Promise<void> {
  await node(parts, 0).kill();
  await whenMaster(node(parts, 3));
  await node(parts, 0).start();
}

export const CLUSTER_FAULTS: readonly AnyFault[] = [
  plannedFailover,
  onCluster("unplanned failover: a master is killed, and comes back as a replica", unplannedFailover),
  fault<RedisCluster>({
    name: "cluster: the same without REDIS_WAIT_REPLICAS",
    open: openCluster({}),
    strike: unplannedFailover,
    allowed: "what its replica did not have yet is lost",
  }),
  onCluster("a master and its replica are lost for 3 s", async ({ parts }) => {
    await Promise.all([node(parts, 0).kill(), node(parts, 3).kill()]);
    await sleep(3_000);
    await Promise.all([node(parts, 0).start(), node(parts, 3).start()]);
  }),
  onCluster("reshard of 1800 slots to a new master", reshard),
  onCluster("a fresh instance serves at once", async ({ add, serves }) => {
    const fresh = await add();
    for (let at = 0; at < 60; at++) if (!(await serves(fresh))) throw new Error("it was ready, and did not serve");
  }),
];

export const sentinelFailover: AnyFault = fault<readonly [RedisServer, RedisServer]>({
  name: "Sentinel: the master is killed, and comes back as a replica",
  async open() {
    const master = await startRedis("--appendonly", "yes");
    const replica = await startReplica(master, "--appendonly", "yes", "--repl-diskless-sync-delay", "0");
    const sentinel = await startSentinel(master);
    await until(async () => {
      if (((await sentinel.admin.call("SENTINEL", "REPLICAS", "main")) as unknown[]).length === 0) throw new Error();
    });
    const stop = async () => {
      await Promise.all([sentinel, replica, master].map((server) => server.stop()));
    };
    const url = `redis+sentinel://127.0.0.1:${sentinel.port}/main`;
    return { env: { ...WAIT, REDIS_URL: url }, parts: [master, replica], stop };
  },
  async strike({ parts: [master, replica] }) {
    await master.kill();
    await whenMaster(replica);
    await master.start(); // Sentinel makes the old master a replica, after some 10 s.
  },
});
