/** What a caller sees when Redis does not do its part: "don't know", within a second, and service as soon as it is back. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterEach, describe, expect, test } from "vitest";
import type { SessionId } from "../../../src/session/model.ts";
import { type SessionStore, StoreRefused, StoreUnavailable } from "../../../src/session/ports.ts";
import type { PresentedToken } from "../../../src/session/rotation.ts";
import { createRedisStore, type RedisStoreOptions } from "../../../src/store/redis/store.ts";
import { freePort, RedisServer, startRedis } from "../../support/redis.ts";
import { until } from "../../support/until.ts";
import { NEVER_MS, redisOptions } from "../backends.ts";
import { ENDED, newSession, nonce, outcomeOf, sidOf, subject } from "../sessions.ts";

const cleanUp: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

async function server(...args: string[]): Promise<RedisServer> {
  const server = await startRedis(...args);
  cleanUp.push(() => server.stop());
  return server;
}

async function open(url: string, more: Partial<RedisStoreOptions> = {}): Promise<SessionStore> {
  const store = await createRedisStore(redisOptions(url, more));
  cleanUp.push(() => store.close());
  return store;
}

async function login(store: SessionStore): Promise<{ sid: SessionId; first: PresentedToken }> {
  const first = nonce();
  const session = newSession(subject());
  await store.create(session, first, 10);
  return { sid: session.sid, first: { generation: 1, nonce: first, issuedAt: 0 } };
}

/** Every verb fails as unavailable within a second. */
async function expectUnavailable(store: SessionStore): Promise<void> {
  const user = subject();
  const sid = sidOf(user);
  const verbs: (() => Promise<unknown>)[] = [
    () => store.create(newSession(user), nonce(), 10),
    () => store.rotate(sid, { generation: 1, nonce: nonce(), issuedAt: 0 }, nonce()),
    () => store.find(sid),
    () => store.list(user, 10, undefined),
    () => store.end(sid, "logout"),
    () => store.endOwned(sid, sid, "revoked_by_owner"),
    () => store.endAll(user, "revoked_subject"),
    () => store.revokeAll(undefined),
    () => store.elevate(sid, { time: 1_000, methods: ["otp"], contextClass: "" }),
    () => store.revocations(undefined),
    () => store.ping(),
  ];
  await Promise.all(
    verbs.map(async (verb) => {
      const asked = performance.now();
      await expect(verb()).rejects.toThrow(StoreUnavailable);
      expect(performance.now() - asked).toBeLessThan(1_000);
    }),
  );
}

describe("an outage", () => {
  test("a Redis that hangs: unavailable within a second, and no user is logged out when it is back", async () => {
    const redis = await server();
    const store = await open(redis.url);
    const { sid, first } = await login(store);
    redis.pause();
    await expectUnavailable(store); // by timeout
    await expectUnavailable(store); // while nothing is connected
    await expect(store.rotate(sid, first, nonce())).rejects.toThrow(StoreUnavailable);
    redis.resume();
    await until(() => store.ping());
    expect(["rotate", "repeat"]).toContain(outcomeOf(await store.rotate(sid, first, nonce())));
  });

  test("a Redis that is killed and comes back from its disk: sessions live, what was ended stays ended", async () => {
    const redis = await server("--appendonly", "yes", "--appendfsync", "always");
    const store = await open(redis.url);
    const [live, ended] = [await login(store), await login(store)];
    const rotated = await store.rotate(live.sid, live.first, nonce());
    await store.end(ended.sid, "logout");
    const { cursor } = await store.revocations(undefined);
    await redis.kill();
    await expectUnavailable(store);
    await redis.start();
    await until(() => store.ping());
    expect(await store.rotate(ended.sid, ended.first, nonce())).toEqual({ ok: false, reason: "revoked" });
    if (!rotated.ok) throw new Error(rotated.reason);
    expect(outcomeOf(await store.rotate(live.sid, rotated.child, nonce()))).toBe("repeat");
    const { revocations } = await store.revocations(cursor);
    expect(revocations).toContainEqual(expect.objectContaining({ sid: ended.sid }));
  });

  test("a Redis that was killed wakes the followers of the log, since they may have missed entries", async () => {
    const redis = await server();
    const store = await open(redis.url);
    const hints: number[] = [];
    let wake = () => {};
    const stop = store.onRevocation((hint) => {
      hints.push(hint.length);
      wake();
    });
    const next = async () => {
      while (hints.length === 0) await new Promise<void>((resolve) => (wake = resolve));
      return hints.shift();
    };
    expect(await next()).toBe(0);
    await redis.kill();
    await redis.start();
    expect(await next()).toBe(0);
    await until(() => store.end(sidOf(subject()), "logout"));
    expect(await next()).toBe(1);
    stop();
  });

  test("a Redis that is still loading is unavailable, then serves", async () => {
    const redis = await server("--key-load-delay", "20000", "--loading-process-events-interval-bytes", "1024");
    const store = await open(redis.url);
    const { sid } = await login(store);
    for (let at = 0; at < 40; at++) await login(store);
    await redis.admin.save();
    await redis.kill();
    const started = redis.start();
    const witness = new Redis(redis.port, { enableReadyCheck: false, retryStrategy: () => 10 }).on("error", () => {});
    await until(async () => expect(await witness.get("x").catch(String)).toContain("LOADING"));
    await expectUnavailable(store);
    expect(await witness.get("x").catch(String)).toContain("LOADING");
    witness.disconnect();
    await started;
    await until(() => store.ping());
    expect((await store.find(sid)).ok).toBe(true);
  });

  test("a process that was held up does not take the replies for late", async () => {
    const redis = await server();
    const store = await open(redis.url);
    const { sid, first } = await login(store);
    const result = store.rotate(sid, first, nonce());
    await new Promise(setImmediate); // it is sent
    for (const resume = performance.now() + 700; performance.now() < resume; );
    expect(outcomeOf(await result)).toBe("rotate");
  });

  test("a service may start before its Redis", async () => {
    const redis = new RedisServer(await freePort(), []);
    cleanUp.push(() => redis.stop());
    const store = await open(redis.url);
    await expectUnavailable(store);
    await redis.start();
    await until(() => store.ping());
    expect((await store.find((await login(store)).sid)).ok).toBe(true);
  });
});

describe("a Redis that refuses", () => {
  test("out of memory: no session is made or refreshed, but a logout makes room", async () => {
    const redis = await server();
    const store = await open(redis.url);
    const { sid, first } = await login(store);
    await redis.admin.config("SET", "maxmemory", "1");
    await expect(store.ping()).rejects.toThrow(/OOM/);
    await expect(login(store)).rejects.toThrow(StoreUnavailable);
    await expect(store.rotate(sid, first, nonce())).rejects.toThrow(StoreUnavailable);
    expect(await store.end(sid, "logout")).toEqual(ENDED);
    expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
    await redis.admin.config("SET", "maxmemory", "0");
    await store.ping();
    await login(store);
  });

  test("a disk that cannot be written: Redis takes no writes, and is not ready", async () => {
    const redis = await server();
    const store = await open(redis.url);
    const [, directory = ""] = (await redis.admin.config("GET", "dir")) as string[];
    await redis.admin.config("SET", "save", "3600 1");
    mkdirSync(join(directory, "dump.rdb"));
    await redis.admin.bgsave();
    await until(async () => expect(await redis.admin.info("persistence")).toContain("rdb_last_bgsave_status:err"));
    await expect(store.ping()).rejects.toThrow(/MISCONF/);
    await expect(login(store)).rejects.toThrow(StoreUnavailable);
    await redis.admin.config("SET", "save", "");
    await store.ping();
  });

  test("too few replicas for a write, as Redis is configured: not ready", async () => {
    const redis = await server("--min-replicas-to-write", "1");
    const store = await open(redis.url);
    await expect(store.ping()).rejects.toThrow(/NOREPLICAS/);
    await redis.admin.config("SET", "min-replicas-to-write", "0");
    await store.ping();
  });

  test("a read-only replica serves nothing, since it may be out of date", async () => {
    const [master, redis] = [await server("--repl-diskless-sync-delay", "0"), await server()];
    const store = await open(redis.url);
    await redis.admin.replicaof("127.0.0.1", master.port);
    await until(async () => expect(await redis.admin.info("replication")).toContain("master_link_status:up"));
    await expectUnavailable(store);
    await redis.admin.call("REPLICAOF", "NO", "ONE");
    await until(() => login(store));
  });

  test("a script that blocks Redis", async () => {
    const redis = await server("--busy-reply-threshold", "10");
    const store = await open(redis.url);
    await redis.admin.ping(); // connected, so that it can end what follows
    const endless = redis.admin.duplicate().on("error", () => {});
    const killed = endless.eval("while true do end", 0).catch(String);
    await until(async () => expect(await redis.admin.get("x").catch(String)).toContain("BUSY"));
    await expectUnavailable(store);
    await redis.admin.script("KILL");
    expect(await killed).toContain("killed");
    endless.disconnect();
    await until(() => login(store));
  });

  test("scripts that Redis has forgotten are sent again", async () => {
    const redis = await server();
    const store = await open(redis.url);
    const { sid, first } = await login(store);
    await redis.admin.script("FLUSH");
    const [a, b] = await Promise.all([store.rotate(sid, first, nonce()), store.rotate(sid, first, nonce())]);
    expect([outcomeOf(a), outcomeOf(b)].sort()).toEqual(["repeat", "rotate"]);
  });

  test("a password that changes is an outage, until it is right again", async () => {
    const redis = await server();
    const store = await open(redis.url);
    await redis.admin.config("SET", "requirepass", "another");
    await redis.admin.call("CLIENT", "KILL", "SKIPME", "yes");
    await until(async () => {
      await expect(store.ping()).rejects.toThrow(StoreUnavailable);
    });
    await expectUnavailable(store);
    await redis.admin.config("SET", "requirepass", "");
    await until(() => store.ping());
  });
});

describe("a Redis that forgets", () => {
  const warnings = async (redis: RedisServer) => {
    const lines: string[] = [];
    const store = await open(redis.url, { log: (level, message) => void lines.push(`${level} ${message}`) });
    await store.ping();
    return lines;
  };

  test("without an append-only file the start warns, once, of what a restart would lose", async () => {
    const lines = await warnings(await server());
    expect(lines).toEqual([expect.stringMatching(/^warn .*no append-only file.*logouts since are undone/)]);
  });

  test("with one it does not", async () => {
    expect(await warnings(await server("--appendonly", "yes"))).toEqual([]);
  });
});

describe("a Redis that must not be used", () => {
  test("another eviction policy than noeviction is refused at the start", async () => {
    const redis = await server("--maxmemory-policy", "allkeys-lru");
    await expect(open(redis.url)).rejects.toThrow(StoreRefused);
    await expect(open(redis.url)).rejects.toThrow(/allkeys-lru.*noeviction/);
  });

  test("one that turns up later is reported, and not used until it is fixed", async () => {
    const redis = new RedisServer(await freePort(), ["--maxmemory-policy", "allkeys-lru"]);
    cleanUp.push(() => redis.stop());
    const reported = Promise.withResolvers<string>();
    const log = (level: string, message: string) => level === "error" && reported.resolve(message);
    const store = await open(redis.url, { log });
    await redis.start();
    expect(await reported.promise).toContain("noeviction");
    await expectUnavailable(store);
    await expect(store.ping()).rejects.toThrow(StoreRefused);
    await redis.admin.config("SET", "maxmemory-policy", "noeviction");
    await until(() => store.ping());
    await login(store);
  });

  test("one whose policy changes while it is used is detected and not used, until it is fixed", async () => {
    const redis = await server();
    const reported = Promise.withResolvers<string>();
    const store = await open(redis.url, {
      log: (level, message) => level === "error" && reported.resolve(message),
    });
    await redis.admin.config("SET", "maxmemory-policy", "volatile-ttl");
    expect(await reported.promise).toContain("volatile-ttl"); // without a command
    await expectUnavailable(store);
    await redis.admin.config("SET", "maxmemory-policy", "noeviction");
    await until(() => login(store)); // without a command
  });

  test("one that has become unfit while it was away is not used for a single command", async () => {
    const redis = await server("--appendonly", "yes", "--appendfsync", "always");
    const store = await open(redis.url);
    const { sid } = await login(store);
    await redis.kill();
    await redis.start("maxmemory-policy allkeys-lru");
    const results: string[] = [];
    await until(async () => {
      results.push((await store.find(sid).catch(String)).toString());
      await expect(store.ping()).rejects.toThrow(/allkeys-lru/);
    });
    expect(results.every((result) => result.startsWith("StoreUnavailable"))).toBe(true);
    await expectUnavailable(store);
    await redis.admin.config("SET", "maxmemory-policy", "noeviction");
    await until(() => store.find(sid));
  });

  test("wrong credentials are refused at the start, and not repeated", async () => {
    const redis = await server("--requirepass", "right");
    for (const url of [redis.url, redis.url.replace("//", "//:hunter2@")]) {
      const refusal = await open(url).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(StoreRefused);
      expect(JSON.stringify(refusal) + String(refusal)).not.toContain("hunter2");
    }
    await (await open(redis.url.replace("//", "//:right@"))).ping();
  });

  test("one node of a cluster, named alone, is refused at the start", async () => {
    const redis = await server("--cluster-enabled", "yes", "--cluster-port", `${await freePort()}`);
    await expect(open(redis.url)).rejects.toThrow(/part of a cluster/);
  });
});

test("a refresh is one command", async () => {
  const redis = await server();
  const store = await open(redis.url, { recheckMs: NEVER_MS });
  const { sid, first } = await login(store);
  await store.rotate(sid, first, nonce());
  const commands = async () => {
    const stats = await redis.admin.info("commandstats");
    return new Map([...stats.matchAll(/cmdstat_(\S+):calls=(\d+)/g)].map(([, name, calls]) => [name, Number(calls)]));
  };
  const before = await commands();
  for (let at = 0; at < 100; at++) await store.rotate(sid, first, nonce());
  const after = await commands();
  expect((after.get("evalsha") ?? 0) - (before.get("evalsha") ?? 0)).toBe(100);
  // What else ran was within the scripts, or asked whether Redis may be used, or was this test's own question.
  const inScripts = new Set(["evalsha", "info", "eval", "time", "get", "set"]);
  const others = [...after].filter(([name, calls]) => !inScripts.has(`${name}`) && calls !== before.get(name));
  expect(others).toEqual([]);
});
