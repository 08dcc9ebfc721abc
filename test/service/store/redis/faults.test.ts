/** When Redis fails, callers soon get `StoreUnavailable`. They are served again as soon as Redis is back. */
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { Redis } from "ioredis";
import { describe, expect, onTestFinished, test } from "vitest";
import { StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { startFaultyProxy } from "../../../support/faulty-proxy.ts";
import { freePort } from "../../../support/free-port.ts";
import { RedisServer } from "../../../support/redis.ts";
import { NEVER_MS } from "../../../support/store/backends.ts";
import { expectUnavailable, login, open, openEarly, server } from "../../../support/store/redis.ts";
import { ENDED, nonce, outcomeOf, sidOf, subject } from "../../../support/store/sessions.ts";
import { until } from "../../../support/until.ts";

describe("an outage", () => {
  test("a Redis that hangs: unavailable within a second, and no user is logged out when it is back", async () => {
    const redis = await server();
    const store = await open(redis.url);
    const { sid, first } = await login(store);
    redis.pause();
    await expectUnavailable(store); // Each call fails by its timeout.
    await expectUnavailable(store); // Each call fails at once, because the connection was given up.
    await expect(store.rotate(sid, first, nonce())).rejects.toThrow(StoreUnavailable);
    redis.resume();
    await until(() => store.ping());
    expect(["rotate", "repeat"]).toContain(outcomeOf(await store.rotate(sid, first, nonce())));
  });

  test("a Redis that is killed during calls: neither errors nor the log name options of its client", async () => {
    const redis = await server();
    const lines: string[] = [];
    const store = await open(redis.url, { log: (_, message) => lines.push(message) });
    const { sid, first } = await login(store);
    redis.pause();
    const failures = Array.from({ length: 4 }, () => store.rotate(sid, first, nonce()).catch((error: Error) => error));
    await redis.kill();
    failures.push(store.ping().catch((error: Error) => error) as (typeof failures)[0]);
    const messages = (await Promise.all(failures)).map((failure) => (failure instanceof Error ? failure.message : ""));
    expect(messages).toContain("Redis: the connection was lost");
    await until(() => expect(lines).not.toEqual([]));
    expect([...messages, ...lines].join("\n")).not.toMatch(/option/);
  });

  test("a Redis that is killed and comes back from its disk: sessions live, what was ended stays ended", async () => {
    const redis = await server("--appendonly", "yes", "--appendfsync", "always");
    const store = await open(redis.url);
    const [live, ended] = [await login(store), await login(store)];
    const rotated = await store.rotate(live.sid, live.first, nonce());
    const { cursor } = await store.revocations(undefined);
    await store.end(ended.sid, "logout");
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
    await new Promise(setImmediate); // The command is sent before this process is blocked.
    for (const resume = performance.now() + 700; performance.now() < resume; );
    expect(outcomeOf(await result)).toBe("rotate");
  });

  test("a process that was held up at its start does not take Redis for away", async () => {
    const redis = await server();
    const opening = openEarly(redis.url, { commandTimeoutMs: 2_000 });
    await new Promise(setImmediate); // The client begins to connect before this process is blocked.
    for (const resume = performance.now() + 2_500; performance.now() < resume; );
    await login(await opening);
  });

  test.each(["*1000000000\r\n", "$5000000000\r\n", "?\r\n"])(
    "a reply that does not end, or is none (%j), costs the connection alone",
    async (bytes) => {
      const proxy = await startFaultyProxy((await server()).port);
      onTestFinished(() => proxy.stop());
      const store = await open(`redis://127.0.0.1:${proxy.port}`);
      const { sid, first } = await login(store);
      proxy.inject(Buffer.from(bytes));
      await expectUnavailable(store);
      await until(() => store.ping());
      expect(outcomeOf(await store.rotate(sid, first, nonce()))).toBe("rotate");
    },
  );

  test("a service may start before its Redis", async () => {
    const redis = new RedisServer(await freePort(), []);
    onTestFinished(() => redis.stop());
    const store = await openEarly(redis.url);
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
    // A provider's logout is noted first.
    const said = { issuer: "https://login.example", endedSession: "one" };
    await store.note(said, 60_000);
    expect(await store.isNoted(said)).toBe(true);
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
    const store = await openEarly(redis.url);
    await until(() => expect(store.ping()).rejects.toThrow(/NOREPLICAS/));
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

  test("all commands in flight are refused by a demoted server, which ends the connection once", async () => {
    const [master, redis] = [await server("--repl-diskless-sync-delay", "0"), await server()];
    const store = await open(redis.url);
    const warnings: Error[] = [];
    const note = (warning: Error) => void warnings.push(warning);
    process.on("warning", note);
    onTestFinished(() => void process.off("warning", note));
    await redis.admin.replicaof("127.0.0.1", master.port);
    redis.pause(); // Commands wait until Redis resumes. Then all their replies arrive together.
    const logins = Array.from({ length: 20 }, () => login(store).catch((error: unknown) => error));
    redis.resume();
    for (const error of await Promise.all(logins)) expect(error).toBeInstanceOf(StoreUnavailable);
    await redis.admin.call("REPLICAOF", "NO", "ONE");
    await until(() => login(store));
    expect(warnings).toEqual([]);
  });

  test("a script that blocks Redis", async () => {
    const redis = await server("--busy-reply-threshold", "10");
    const store = await open(redis.url);
    await redis.admin.ping(); // This opens the connection that kills the script below.
    const endless = redis.admin.duplicate().on("error", () => {});
    const killed = endless.eval("while true do end", 0).catch(String);
    await until(async () => expect(await redis.admin.get("x").catch(String)).toContain("BUSY"));
    await expectUnavailable(store);
    await redis.admin.script("KILL");
    expect(await killed).toContain("killed");
    endless.disconnect();
    await until(() => login(store));
  });

  test("a connection that cannot select its database is not used: no session is looked for in another one", async () => {
    const redis = await server("--busy-reply-threshold", "10");
    const proxy = await startFaultyProxy(redis.port);
    onTestFinished(() => proxy.stop());
    const store = await open(`redis://127.0.0.1:${proxy.port}/5`);
    const { sid, first } = await login(store);
    await redis.admin.ping(); // This opens the connection that kills the script below.
    const endless = redis.admin.duplicate().on("error", () => {});
    const killed = endless.eval("while true do end", 0).catch(String);
    await until(async () => expect(await redis.admin.get("x").catch(String)).toContain("BUSY"));
    const opened = proxy.opened();
    proxy.reset();
    // SELECT is refused as BUSY on each of these connections.
    await until(() => expect(proxy.opened()).toBeGreaterThan(opened));
    await expectUnavailable(store);
    await redis.admin.script("KILL");
    expect(await killed).toContain("killed");
    endless.disconnect();
    await until(() => store.ping());
    expect(outcomeOf(await store.rotate(sid, first, nonce()))).toBe("rotate");
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
  // The store sends one script for each refresh and nothing else. The commands in this list run inside scripts, check whether Redis may be
  // used, or are sent by this test.
  const inScripts = new Set(["evalsha", "info", "eval", "time", "get", "mget", "set"]);
  const others = [...after].filter(([name, calls]) => !inScripts.has(`${name}`) && calls !== before.get(name));
  expect(others).toEqual([]);
});

test("a name that leads to another server takes the hints along with the commands", async () => {
  const [before, after] = [await server(), await server()];
  await after.admin.replicaof("127.0.0.1", `${before.port}`);
  await until(async () => expect(await before.admin.info("replication")).toContain("state=online"));
  let port = before.port;
  const name = createServer((client) => {
    const upstream = connect(port, "127.0.0.1");
    client.on("error", () => {}).on("close", () => upstream.destroy());
    upstream.on("error", () => {}).on("close", () => client.destroy());
    client.pipe(upstream).pipe(client);
  }).listen(0, "127.0.0.1");
  await once(name, "listening");
  onTestFinished(() => void name.close());
  const store = await open(`redis://127.0.0.1:${(name.address() as AddressInfo).port}`);
  const hinted: string[] = [];
  const stop = store.onRevocation((hint) => void hinted.push(...hint.map(({ sid }) => sid)));
  onTestFinished(stop);
  const untilHinted = async () => {
    const ended: string[] = [];
    await until(async () => {
      const { sid } = await login(store);
      ended.push(sid);
      await store.end(sid, "logout");
      expect(hinted.filter((each) => ended.includes(each))).not.toEqual([]);
    });
  };
  await untilHinted();

  await after.admin.replicaof("NO", "ONE");
  port = after.port;
  await before.admin.replicaof("127.0.0.1", "1"); // Demoted. It accepts connections, and hears of nothing.
  await untilHinted();
});
