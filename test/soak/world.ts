/** A real Redis that can crash and come back, several instances of the store on it, and a clock that the test moves. */
import type { SessionStore } from "../../src/service/session/ports.ts";
import { TAGS } from "../../src/service/store/redis/partitions.ts";
import { createRedisStore } from "../../src/service/store/redis/store.ts";
import { startRedis } from "../support/redis.ts";
import { movable, redisOptions } from "../support/store/backends.ts";
import { until } from "../support/until.ts";

export type World = {
  readonly instances: readonly SessionStore[];
  now(): number;
  advance(ms: number): Promise<void>;
  /** Kills Redis while `during` runs, and restarts it with the data on its disk. */
  crash<T>(during: () => Promise<T>): Promise<T>;
  /** Keeps a copy of all data of Redis, which the next `forget` restores. */
  remember(): Promise<void>;
  /** Kills Redis and restarts it with the data of `remember`, like a failover that has lost the last writes. */
  forget(): Promise<void>;
  /** Closes an instance and opens another. */
  restartInstance(at: number): Promise<void>;
  stop(): Promise<void>;
};

/** The timeout is long enough for a busy machine. It does not slow down crashes, because these close the connections. */
const COMMAND_TIMEOUT_MS = 5_000;

/** @param lossy whether Redis loses its last writes at a crash (snapshots) or keeps them (append-only file) */
export async function createWorld(lossy: boolean): Promise<World> {
  const server = await startRedis(...(lossy ? [] : ["--appendonly", "yes"]));
  let now = Date.now();
  const setClock = () => Promise.all(TAGS.map((tag) => server.admin.set(`${tag}clock`, now)));
  await setClock();
  const open = () =>
    createRedisStore(redisOptions(server.url, { ...movable(() => now), commandTimeoutMs: COMMAND_TIMEOUT_MS }));
  const instances = [await open(), await open(), await open()];
  const back = async () => {
    await server.start();
    await setClock();
    await until(() => Promise.all(instances.map((store) => store.ping())));
  };
  return {
    instances,
    now: () => now,
    async advance(ms) {
      now += ms;
      await setClock();
    },
    async crash(during) {
      const running = during();
      await server.admin.ping(); // Redis is killed when some of the writes have been acknowledged and others have not.
      await server.kill();
      const result = await running;
      await back();
      return result;
    },
    async remember() {
      await server.admin.save();
    },
    async forget() {
      await server.kill();
      await back();
    },
    async restartInstance(at) {
      await instances[at]?.close();
      instances[at] = await open();
    },
    async stop() {
      await Promise.all(instances.map((store) => store.close()));
      await server.stop();
    },
  };
}
