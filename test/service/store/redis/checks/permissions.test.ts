/** The permissions of the service's Redis user: those in docs/tasks/operations.md are enough, and each of them is needed. */
import { readFileSync } from "node:fs";
import { Redis } from "ioredis";
import { afterEach, describe, expect, test } from "vitest";
import { type SessionStore, StoreRefused, StoreUnavailable } from "../../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../../src/service/session/time.ts";
import { loadScripts } from "../../../../../src/service/store/redis/scripts.ts";
import { createRedisStore, type RedisStoreOptions } from "../../../../../src/service/store/redis/store.ts";
import { type RedisServer, startRedis, startRedisCluster } from "../../../../support/redis.ts";
import { redisOptions } from "../../../../support/store/backends.ts";
import { dueOf, loginWith, RETENTION, recordOf } from "../../../../support/store/event-records.ts";
import { untilReached } from "../../../../support/store/reached.ts";
import {
  ENDED,
  endedAll,
  expectCreated,
  newSession,
  nonce,
  outcomeOf,
  sidOf,
  sidsOf,
  subject,
} from "../../../../support/store/sessions.ts";
import { until } from "../../../../support/until.ts";

const cleanUp: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

const OPERATIONS = readFileSync(new URL("../../../../../docs/tasks/operations.md", import.meta.url), "utf8");
/**
 * The permissions in the `ACL SETUSER` line of docs/tasks/operations.md. `MORE` has further permissions: those for a cluster, for
 * REDIS_WAIT_REPLICAS and for another database.
 */
const LINE = (/`ACL SETUSER ([^`]+)`/.exec(OPERATIONS)?.[1] ?? "").split(" ");
const NAME = LINE[0] ?? "";
const MORE = { cluster: ["+cluster|info", "+cluster|slots"], wait: ["+wait"], select: ["+select"] };

async function server(...args: string[]): Promise<RedisServer> {
  const server = await startRedis(...args);
  cleanUp.push(() => server.stop());
  return server;
}

async function open(url: string, more: Partial<RedisStoreOptions> = {}): Promise<SessionStore> {
  const store = await createRedisStore(
    redisOptions(url.replace("//", `//${NAME}:PASSWORD@`), { commandTimeoutMs: 5_000, ...more }),
  );
  cleanUp.push(() => store.close());
  await untilReached(store);
  return store;
}

const allow = (redis: RedisServer, words: readonly string[] = LINE) => redis.admin.call("ACL", "SETUSER", ...words);

/** Calls every method of the store, once for each way in which the method may write to Redis. */
async function everyVerb(store: SessionStore): Promise<void> {
  const hinted: string[] = [];
  const listening = Promise.withResolvers<void>();
  const stop = store.onRevocation((hint) => {
    listening.resolve();
    hinted.push(...hint.map(({ sid }) => sid));
  });
  await listening.promise;
  const user = subject();
  const [a, b, c] = [newSession(user), newSession(user), newSession(user)];
  const first = nonce();
  await store.create(a, first, { cap: 10 });
  await store.create(b, first, { cap: 10 });
  expect(sidsOf(expectCreated(await store.create(c, first, { cap: 2 })).evicted)).toEqual([a.sid]);
  expect(outcomeOf(await store.rotate(b.sid, { generation: 1, nonce: first, issuedAt: storeMs(0) }, nonce()))).toBe(
    "rotate",
  );
  expect((await store.find(b.sid)).ok).toBe(true);
  expect((await store.list(user, 10, undefined)).sessions).toHaveLength(2);
  expect((await store.listAll(10, undefined, {})).sessions).toHaveLength(2);
  expect(await store.endOwned(b.sid, c.sid, "revoked_by_owner")).toEqual({ ok: true });
  expect(await store.end(b.sid, "logout")).toEqual(ENDED);
  await store.create(newSession(user), first, { cap: 10 });
  expect(await store.endAll(user, "revoked_subject")).toEqual(endedAll(expect.any(String)));
  expect((await store.revocations(undefined)).revocations).toHaveLength(4);
  await store.ping();
  while (hinted.length < 4) await new Promise(setImmediate);
  stop();
}

describe("the Redis user of docs/tasks/operations.md", () => {
  test("may do all that the service does", async () => {
    const redis = await server();
    await allow(redis);
    await everyVerb(await open(redis.url));
    expect(await redis.admin.acl("LOG")).toEqual([]);
  });

  test("may do it on a cluster, with what that needs besides", async () => {
    const cluster = await startRedisCluster();
    cleanUp.push(() => cluster.stop());
    for (const node of cluster.nodes) await allow(node, [...LINE, ...MORE.cluster]);
    await everyVerb(await open(cluster.url));
    for (const missing of MORE.cluster) {
      for (const node of cluster.nodes) await allow(node, [NAME, `-${missing.slice(1)}`]);
      await expect(open(cluster.url)).rejects.toThrow(missing.slice(1));
      for (const node of cluster.nodes) await allow(node, [NAME, missing]);
    }
  });

  test("may do it on another database and waiting for replicas, with what that needs besides", async () => {
    const redis = await server();
    await allow(redis);
    await expect(open(`${redis.url}/3`)).rejects.toThrow("select");
    await expect(open(redis.url, { waitReplicas: 1 })).rejects.toThrow("+wait");
    await allow(redis, [NAME, ...MORE.select, ...MORE.wait]);
    await (await open(`${redis.url}/3`)).ping();
    await expect((await open(redis.url, { waitReplicas: 1 })).end(sidOf(subject()), "logout")).rejects.toThrow(
      "0 of 1 replicas",
    );
  });

  test.each(LINE.filter((word) => /^[+~&]/.test(word)))("without %s it fails the start with its name", async (word) => {
    const redis = await server();
    await allow(
      redis,
      LINE.filter((other) => other !== word),
    );
    const refusal = await open(redis.url).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StoreRefused);
    expect(String(refusal)).toContain(word.startsWith("+") ? word.slice(1) : word);
    expect(String(refusal)).not.toContain("PASSWORD");
  });

  test("an ordinary user, whom Redis gives no channel, is refused for that alone", async () => {
    const redis = await server();
    await allow(redis, [NAME, "on", ">PASSWORD", "~*", "+@all"]);
    const refusal = await open(redis.url).catch((error: unknown) => error);
    expect(String(refusal)).toMatch(/: &session-revocations \+subscribe \+publish$/);
  });
});

describe("a user who lacks several permissions", () => {
  const refusalOf = (url: string) => open(url).then(String, String);

  test("gets all of them named at the start, without INFO, too", async () => {
    const redis = await server();
    await allow(redis, [...LINE, "-info", "-hget", "resetchannels"]);
    expect(await refusalOf(redis.url)).toMatch(/: ~\{\* &session-revocations \+info \+subscribe \+hget \+publish$/);
  });

  test("who may run no script gets the whole list", async () => {
    const redis = await server();
    await allow(redis, [...LINE, "-@all", "+ping"]);
    const refusal = await refusalOf(redis.url);
    for (const word of LINE.filter((each) => /^[+~&]/.test(each))) expect(refusal).toContain(word);
  });

  test("of a cluster gets them named although the cluster cannot be explored", async () => {
    const cluster = await startRedisCluster();
    cleanUp.push(() => cluster.stop());
    for (const node of cluster.nodes) await allow(node, [...LINE, "-info"]);
    expect(await refusalOf(cluster.url)).toMatch(/: \+info \+cluster\|info \+cluster\|slots$/);
  });

  test("gets the settings of Redis named that must change, too", async () => {
    const redis = await server("--maxmemory-policy", "allkeys-lru");
    await allow(redis, [...LINE, "-hget"]);
    expect(await refusalOf(redis.url)).toMatch(
      /allkeys-lru.*set it to noeviction; it denies the user .*: ~\{\* \+hget$/,
    );
  });
});

describe("a permission that is taken away while the service runs", () => {
  const writing = [
    "set",
    "del",
    "zadd",
    "zrange",
    "zrem",
    "zrevrangebylex",
    "zremrangebyscore",
    "pexpireat",
    "pexpiretime",
    "get",
    "hget",
    "hset",
    "hdel",
  ];
  test.each(writing)("%s: a logout does nothing by halves, and works when it is given back", async (command) => {
    const redis = await server();
    await allow(redis);
    const store = await open(redis.url);
    const session = newSession(subject());
    await store.create(session, nonce(), { cap: 10 });
    const before = await contents(redis);
    await allow(redis, [NAME, `-${command}`]);
    await expect(store.end(session.sid, "logout")).rejects.toThrow(StoreUnavailable);
    expect(await contents(redis)).toEqual(before);
    await expect(store.ping()).rejects.toThrow(`+${command}`);
    await expect(store.find(session.sid)).rejects.toThrow(StoreUnavailable); // `ping` has noticed the missing permission.
    await allow(redis, [NAME, `+${command}`]);
    expect(await until(() => store.end(session.sid, "logout"))).toEqual(ENDED);
    expect((await store.revocations(undefined)).revocations).toMatchObject([{ sid: session.sid }]);
  });

  test.each(["hset", "zadd", "hrandfield"])("%s: a login does nothing by halves", async (command) => {
    const redis = await server();
    await allow(redis);
    const store = await open(redis.url);
    const before = await contents(redis);
    await allow(redis, [NAME, `-${command}`]);
    await expect(store.create(newSession(subject()), nonce(), { cap: 10 })).rejects.toThrow(StoreUnavailable);
    expect(await contents(redis)).toEqual(before);
  });

  test.each(["set", "zadd"])("%s: an event that cannot be stored stays due", async (command) => {
    const redis = await server();
    await allow(redis);
    const store = await open(redis.url);
    const { sid } = await loginWith(store, subject(), {}, {});
    await store.end(sid, "logout", {});
    const due = await dueOf(store, sid);
    await allow(redis, [NAME, `-${command}`]);
    const records = due.map(({ event }) => recordOf(event));
    expect(await store.recordEvents(records, RETENTION)).toEqual(records);
    await allow(redis, [NAME, `+${command}`]);
    expect(await until(() => dueOf(store, sid))).toEqual(due);
  });

  test("a channel: an ending reaches no listener, and stands", async () => {
    const redis = await server();
    await allow(redis);
    await allow(redis, [NAME, "resetchannels"]);
    const client = new Redis(redis.url.replace("//", `//${NAME}:PASSWORD@`));
    cleanUp.push(async () => client.disconnect());
    const sid = sidOf(subject());
    expect(await client.eval(loadScripts().end.text, 1, "{00}", sid, "logout", 1000, "", "", "", 0, 1e15, 0)).toEqual([
      "marked",
    ]);
    expect(await redis.admin.zcard("{00}l")).toBe(1);
  });

  test("within a script it is an outage, not a bug", async () => {
    const redis = await server();
    await allow(redis);
    const store = await open(redis.url);
    for (const [without, given] of [
      ["-get", "+get"],
      ["resetkeys", "~{*"],
    ] as const) {
      await allow(redis, [NAME, without]);
      await expect(store.find(sidOf(subject()))).rejects.toThrow(StoreUnavailable);
      await allow(redis, [NAME, given]);
      await until(() => store.find(sidOf(subject())));
    }
  });

  /** Returns the contents of Redis. */
  async function contents({ admin }: RedisServer): Promise<unknown> {
    const keys = (await admin.keys("*")).sort();
    return Promise.all(keys.map(async (key) => [key, await admin.dumpBuffer(key)]));
  }
});
