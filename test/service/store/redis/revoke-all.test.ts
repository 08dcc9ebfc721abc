/** The end of all sessions on Redis: its cost, and its behaviour when Redis fails. */
import { expect, onTestFinished, test } from "vitest";
import { type SessionStore, StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import { CuttingProxy } from "../../../proofs/support/proxy.ts";
import { type RedisServer, startRedis } from "../../../support/redis.ts";
import { NEVER_MS, redisOptions } from "../../../support/store/backends.ts";
import { newSession, nonce, subject } from "../../../support/store/sessions.ts";
import { until } from "../../../support/until.ts";

async function aRedis(): Promise<RedisServer> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  return redis;
}

async function open(url: string): Promise<SessionStore> {
  const store = await createRedisStore(redisOptions(url, { commandTimeoutMs: 2_000, recheckMs: NEVER_MS }));
  onTestFinished(() => store.close());
  await until(() => store.ping());
  return store;
}

async function logIn(store: SessionStore, count: number) {
  const sessions = Array.from({ length: count }, () => newSession(subject()));
  await Promise.all(sessions.map((session) => store.create(session, nonce(), { cap: 10 })));
  return sessions.map(({ sid }) => sid);
}

async function liveOf(store: SessionStore, sids: Awaited<ReturnType<typeof logIn>>): Promise<number> {
  const found = await Promise.all(sids.map((sid) => store.find(sid)));
  return found.filter(({ ok }) => ok).length;
}

test("it takes as many commands for a thousand sessions as for one, and they do as much", async () => {
  const redis = await aRedis();
  const store = await open(redis.url);
  const commands = async (): Promise<number[]> => {
    await redis.admin.config("RESETSTAT");
    await store.revokeAll(undefined);
    const stats = String(await redis.admin.info("commandstats"));
    return ["eval", "evalsha", "get", "set", "zadd"].map((name) =>
      Number(new RegExp(`^cmdstat_${name}:calls=(\\d+)`, "m").exec(stats)?.[1] ?? 0),
    );
  };
  await logIn(store, 1);
  await commands(); // The first call loads the scripts into Redis.
  const one = await commands();
  const thousand = await logIn(store, 1000);
  expect(await commands()).toEqual(one);
  expect(await liveOf(store, thousand)).toBe(0);
});

test("it works when memory is full", async () => {
  const redis = await aRedis();
  const store = await open(redis.url);
  const sids = await logIn(store, 10);
  await redis.admin.config("SET", "maxmemory", "1");
  await store.revokeAll(undefined);
  expect(await liveOf(store, sids)).toBe(0);
});

test("one that failed half-way is repeated, and then all have ended", async () => {
  const redis = await aRedis();
  const store = await open(redis.url);
  const sids = await logIn(store, 300);
  // One key has a wrong type, which makes the script of its partition fail. The scripts of all other partitions still run.
  const [broken] = (await redis.admin.keys("{*n")).sort();
  if (broken === undefined) throw new Error("no partition");
  const key = `${broken.slice(0, -1)}l`;
  await redis.admin.set(key, "not a log");
  await expect(store.revokeAll(undefined)).rejects.toThrow();
  await redis.admin.del(key);
  await store.revokeAll(undefined);
  expect(await liveOf(store, sids)).toBe(0);
  expect(await liveOf(store, await logIn(store, 20))).toBe(20);
});

test("Redis that is away makes it unavailable, and ends nothing", async () => {
  const redis = await aRedis();
  const way = await CuttingProxy.to(redis.port);
  const store = await open(`redis://127.0.0.1:${way.port}`);
  const direct = await open(redis.url);
  const sids = await logIn(direct, 10);
  await way.stop();
  await expect(store.revokeAll(undefined)).rejects.toThrow(StoreUnavailable);
  expect(await liveOf(direct, sids)).toBe(10);
});
