/** `REDIS_WAIT_REPLICAS` on a cluster: acknowledged writes survive changes of masters, and the instances find the new masters. */
import { afterEach, beforeEach, expect, test } from "vitest";
import type { SessionStore } from "../../../../src/service/session/ports.ts";
import { TAGS } from "../../../../src/service/store/redis/partitions.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import {
  type ClusterNode,
  failOver,
  joinCluster,
  moveSlots,
  type RedisCluster,
  replicate,
  startClusterNode,
  startReplicatedCluster,
} from "../../../support/redis.ts";
import { redisOptions } from "../../../support/store/backends.ts";
import { untilReached } from "../../../support/store/reached.ts";
import { MARKED, newSession, nonce, sidOf, subject } from "../../../support/store/sessions.ts";
import { until } from "../../../support/until.ts";

const cleanUp: (() => Promise<void>)[] = [];
let cluster: RedisCluster;
let store: SessionStore;

/** Long enough for a replica that gets no processor time on a busy machine. The tests never depend on a timeout. */
const COMMAND_TIMEOUT_MS = 30_000;

const open = async () => {
  const options = redisOptions(cluster.url, { waitReplicas: 1, commandTimeoutMs: COMMAND_TIMEOUT_MS });
  const store = await createRedisStore(options);
  cleanUp.push(() => store.close());
  await untilReached(store);
  return store;
};

beforeEach(async () => {
  cluster = await startReplicatedCluster("--cluster-node-timeout", "1000");
  cleanUp.push(() => cluster.stop());
  store = await open();
});
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const node = (at: number) => cluster.nodes[at] as ClusterNode;
const manySids = (count: number) => Array.from({ length: count }, () => sidOf(subject()));

/** Ends at least this many sessions, one after the other. Each of them must be acknowledged. */
async function endAll(count: number): Promise<void> {
  for (const sid of manySids(count)) expect(await store.end(sid, "logout")).toEqual(MARKED);
}

test("an instance that is ready acknowledges its first logins and endings on every master", async () => {
  for (let instance = 0; instance < 3; instance++) {
    const fresh = await open();
    await Promise.all(manySids(60).map((sid) => fresh.end(sid, "logout")));
    await Promise.all(manySids(60).map(() => fresh.create(newSession(subject()), nonce(), { cap: 10 })));
  }
});

test("after planned failovers the first endings are acknowledged", async () => {
  await endAll(30);
  for (const [master, replica] of [[node(0), node(3)] as const, [node(1), node(4)] as const]) {
    await failOver(replica, master);
    await until(async () => expect(await replica.admin.info("replication")).toContain("state=online"));
    await endAll(60);
  }
});

test("after a master is lost its replica acknowledges, once it has a replica itself, and what was acknowledged is there", async () => {
  const acknowledged = manySids(60);
  await Promise.all(acknowledged.map((sid) => store.end(sid, "logout")));
  const spare = await startClusterNode("--cluster-node-timeout", "1000");
  cleanUp.push(() => spare.stop());
  await joinCluster(cluster.nodes, spare);
  await replicate(spare, node(0));
  await node(0).kill();
  await until(async () => {
    for (const sid of manySids(30)) await store.end(sid, "logout");
  });
  for (const sid of acknowledged) expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
  await until(() => store.ping());
  await endAll(30);
});

test("slots that move to a new master are followed, and it is connected before it is needed", async () => {
  const [master, replica] = [
    await startClusterNode("--cluster-node-timeout", "1000"),
    await startClusterNode("--cluster-node-timeout", "1000"),
  ];
  cleanUp.push(
    () => master.stop(),
    () => replica.stop(),
  );
  await joinCluster(cluster.nodes, master, replica);
  await replicate(replica, master);
  const slots = await Promise.all(TAGS.map((tag) => master.admin.call("CLUSTER", "KEYSLOT", tag).then(Number)));
  const moved = slots.filter((slot) => slot < 5461); // Node 0 serves the slots below 5461.
  await moveSlots([master, node(0), node(1), node(2)], node(0), master, moved);
  await until(() => store.ping());
  await endAll(60);
});
