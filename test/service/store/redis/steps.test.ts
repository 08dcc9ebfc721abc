import { Cluster, Redis } from "ioredis";
import type { SessionStore } from "../../../../src/service/session/ports.ts";
import { TAGS } from "../../../../src/service/store/redis/partitions.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import { startRedis, startRedisCluster } from "../../../support/redis.ts";
import { movable, redisOptions, target } from "../../../support/store/backends.ts";
import { untilReached } from "../../../support/store/reached.ts";
import { clockStepContract, type SteppingBackend } from "../steps.ts";

async function onRedis(url: string, stopServers: () => Promise<void>): Promise<SteppingBackend> {
  const { kind, nodes } = target(url);
  const admin = kind === "cluster" ? new Cluster([...nodes]) : new Redis(nodes[0]);
  // The test's clock is ahead of Redis's own clock, by which Redis would otherwise expire keys when the test sets its clock back and
  // forth.
  let wall = Date.now() + 48 * 3_600_000;
  let steady = 1_000;
  const setClock = () => Promise.all(TAGS.map((tag) => admin.set(`${tag}clock`, wall)));
  await setClock();
  const stores: SessionStore[] = [];
  return {
    async open() {
      const store = await createRedisStore(redisOptions(url, { ...movable(() => steady), commandTimeoutMs: 1_000 }));
      stores.push(store);
      await untilReached(store);
      return store;
    },
    async advance(ms) {
      wall += ms;
      steady += ms;
      await setClock();
    },
    async step(ms) {
      wall += ms;
      await setClock();
    },
    now: () => wall,
    async stop() {
      await Promise.all(stores.map((store) => store.close()));
      admin.disconnect();
      await stopServers();
    },
  };
}

clockStepContract("Redis", async () => {
  const server = await startRedis();
  return onRedis(server.url, () => server.stop());
});

clockStepContract("Redis Cluster", async () => {
  const cluster = await startRedisCluster();
  return onRedis(cluster.url, () => cluster.stop());
});
