/** Faults of a single Redis, and of the network in front of it. */
import { mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { CuttingProxy } from "../proofs/support/proxy.ts";
import { type HoldingProxy, startHoldingProxy } from "../support/holding-proxy.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { type AnyFault, type Backend, fault } from "./world.ts";

const AOF = ["--appendonly", "yes", "--appendfsync", "always"];

const redis =
  (...args: readonly string[]) =>
  async (): Promise<Backend<RedisServer>> => {
    const parts = await startRedis(...args);
    return { env: { REDIS_URL: parts.url }, parts, stop: () => parts.stop() };
  };

const onRedis = (
  name: string,
  strike: (redis: RedisServer) => Promise<void>,
  more: { readonly args?: readonly string[]; readonly allowed?: string; readonly reuseIntervalMs?: number } = {},
): AnyFault =>
  fault<RedisServer>({
    name: `Redis: ${name}`,
    open: redis(...(more.args ?? AOF)),
    strike: ({ parts }) => strike(parts),
    ...(more.allowed === undefined ? {} : { allowed: more.allowed }),
    ...(more.reuseIntervalMs === undefined ? {} : { reuseIntervalMs: more.reuseIntervalMs }),
  });

export const paused = (ms: number, reuseIntervalMs: number) =>
  onRedis(
    `SIGSTOP for ${ms / 1000} s, R = ${reuseIntervalMs / 1000} s`,
    async (redis) => {
      redis.pause();
      await sleep(ms);
      redis.resume();
    },
    { reuseIntervalMs },
  );

const killed = async (redis: RedisServer) => {
  await redis.kill();
  await sleep(500);
  await redis.start();
};

/** Changes a setting of Redis for a while. */
const whileSet = (name: string, value: string, ms: number) => async (redis: RedisServer) => {
  const [, before = ""] = (await redis.admin.config("GET", name)) as string[];
  await redis.admin.config("SET", name, value);
  await sleep(ms);
  await redis.admin.config("SET", name, before);
};

async function readOnly(redis: RedisServer): Promise<void> {
  await redis.admin.replicaof("127.0.0.1", 1); // The new master does not exist, so Redis becomes read-only and keeps its data.
  await sleep(2_000);
  await redis.admin.call("REPLICAOF", "NO", "ONE");
}

async function diskFull(redis: RedisServer): Promise<void> {
  const [, directory = ""] = (await redis.admin.config("GET", "dir")) as string[];
  const obstacle = join(directory, "dump.rdb"); // A directory occupies the name of the snapshot, so that no snapshot can be written.
  mkdirSync(obstacle);
  await redis.admin.config("SET", "save", "3600 1");
  await redis.admin.bgsave();
  await sleep(2_000);
  await redis.admin.config("SET", "save", "");
  rmdirSync(obstacle);
}

async function clientsKilled(redis: RedisServer): Promise<void> {
  for (let at = 0; at < 10; at++) {
    await redis.admin.script("FLUSH");
    await redis.admin.call("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes");
    await sleep(200);
  }
}

async function olderSnapshot(redis: RedisServer): Promise<void> {
  await redis.admin.save();
  await sleep(3_000);
  await killed(redis);
}

/**
 * Runs an endless script as another program, and kills the script after a while. Until then Redis first does not reply at all, and then
 * with BUSY.
 */
async function foreignScript(redis: RedisServer): Promise<void> {
  await redis.admin.config("SET", "busy-reply-threshold", "300");
  const stranger = redis.admin.duplicate();
  stranger.eval("while true do end", 0).catch(() => {}); // The command fails when the script is killed.
  await sleep(3_000);
  await redis.admin.script("KILL");
  stranger.disconnect();
}

const clientPause = (what: "ALL" | "WRITE", ms: number) =>
  onRedis(`CLIENT PAUSE ${what} for ${ms / 1000} s`, async (redis) => {
    await redis.admin.call("CLIENT", "PAUSE", ms, what);
    await sleep(ms);
  });

/** Makes the memory limit follow the memory in use, alternately a little above and a little below it. */
async function edgeOfMemory(redis: RedisServer): Promise<void> {
  for (let at = 0; at < 60; at++) {
    const used = Number(/^used_memory:(\d+)/m.exec(await redis.admin.info("memory"))?.[1]);
    await redis.admin.config("SET", "maxmemory", used + (at % 2 === 0 ? 1 : -1) * 4_096);
    await sleep(50);
  }
  await redis.admin.config("SET", "maxmemory", 0);
}

export const killedWithAof = onRedis("kill -9, append-only file", killed);
export const flushedAndKilled = onRedis("SCRIPT FLUSH and CLIENT KILL, ten times", clientsKilled);

export const REDIS_FAULTS: readonly AnyFault[] = [
  paused(500, 2_000),
  paused(2_000, 2_000),
  paused(5_200, 2_000),
  killedWithAof,
  onRedis("kill -9, no persistence", killed, { args: [], allowed: "all sessions are lost with it" }),
  onRedis("comes back with an older snapshot", olderSnapshot, {
    args: [],
    allowed: "the last writes are lost with it",
  }),
  onRedis("out of memory for 2 s", whileSet("maxmemory", "1", 2_000)),
  onRedis("at the edge of its memory for 3 s", edgeOfMemory),
  onRedis("read-only for 2 s", readOnly),
  onRedis("disk cannot be written for 2 s", diskFull),
  flushedAndKilled,
  onRedis("a script of another client runs for 3 s", foreignScript),
  clientPause("ALL", 3_000),
  clientPause("WRITE", 3_000),
];

type Proxy = { readonly port: number; stop(): Promise<void> };

export const behind = <P extends Proxy>(
  name: string,
  open: (port: number) => Promise<P>,
  strike: (proxy: P) => Promise<void>,
  reuseIntervalMs = 2_000,
) =>
  fault<P>({
    name: `network: ${name}`,
    async open() {
      const server = await startRedis(...AOF);
      const parts = await open(server.port);
      const stop = async () => {
        await parts.stop();
        await server.stop();
      };
      return { env: { REDIS_URL: `redis://127.0.0.1:${parts.port}` }, parts, stop };
    },
    strike: ({ parts }) => strike(parts),
    reuseIntervalMs,
  });

/** Holds all bytes between the service and Redis for 2.6 reuse intervals. */
export const heldBytes = (reuseIntervalMs: number) =>
  behind(
    `holds all bytes for ${(2.6 * reuseIntervalMs) / 1000} s (2.6 R), then passes them on`,
    startHoldingProxy,
    async (proxy) => {
      proxy.hold();
      await sleep(2.6 * reuseIntervalMs);
      proxy.release();
    },
    reuseIntervalMs,
  );

/** Every command takes effect, but nobody receives the reply. */
export const repliesLost = behind("replies of Redis are lost for 3 s", startHoldingProxy, async (proxy) => {
  proxy.loseReplies();
  await sleep(3_000);
  proxy.recover();
});

/** One instance of the service reaches Redis through a proxy that passes nothing on for a while. */
const cutOff: AnyFault = fault<HoldingProxy>({
  name: "network: one instance is cut off from Redis for 5.2 s (2.6 R)",
  async open() {
    const server = await startRedis(...AOF);
    const parts = await startHoldingProxy(server.port);
    const stop = async () => {
      await parts.stop();
      await server.stop();
    };
    const envOf = (at: number) => ({ REDIS_URL: `redis://127.0.0.1:${at === 1 ? parts.port : server.port}` });
    return { env: {}, envOf, parts, stop };
  },
  async strike({ parts }) {
    parts.hold();
    await sleep(5_200);
    parts.release();
  },
  instances: 2,
});

export const PROXY_FAULTS: readonly AnyFault[] = [
  behind(
    "cuts connections at random for 3 s",
    (port) => CuttingProxy.to(port),
    async (proxy) => {
      for (let at = 0; at < 30; at++) {
        proxy.cut(0.5);
        await sleep(100);
      }
    },
  ),
  behind("delays by up to 0.3 s for 3 s", startHoldingProxy, async (proxy) => {
    for (let at = 0; at < 10; at++) {
      proxy.hold();
      await sleep(300);
      proxy.release();
      await sleep(5);
    }
  }),
  heldBytes(2_000),
  repliesLost,
  cutOff,
];
