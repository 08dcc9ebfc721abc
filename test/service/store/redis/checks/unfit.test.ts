import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { StoreRefused, StoreUnavailable } from "../../../../../src/service/session/ports.ts";
import { readLua } from "../../../../../src/service/store/redis/lua-files.ts";
import { freePort } from "../../../../support/free-port.ts";
import { RedisServer } from "../../../../support/redis.ts";
import { expectUnavailable, login, open, openEarly, server } from "../../../../support/store/redis.ts";
import { until } from "../../../../support/until.ts";

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

/** Starts a proxy under which INFO has no line `maxmemory_policy`, as at some that rent out Redis. */
async function startQuietProxy(target: number): Promise<number> {
  const proxy = createServer((client) => {
    const upstream = connect(target, "127.0.0.1");
    // The length must stay, because the protocol announces it.
    const hide = (bytes: string | Buffer) =>
      Buffer.from(bytes.toString("latin1").replace("maxmemory_policy:", "maxmemory_______:"), "latin1");
    client
      .on("error", () => {})
      .on("close", () => upstream.destroy())
      .pipe(upstream);
    upstream
      .on("error", () => {})
      .on("close", () => client.destroy())
      .on("data", (bytes) => client.write(hide(bytes)));
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  onTestFinished(() => void proxy.close());
  return (proxy.address() as AddressInfo).port;
}

describe("a Redis that tells little", () => {
  test("without its eviction policy in INFO, and without CONFIG, it is used with a warning", async () => {
    const redis = await server("--appendonly", "yes", "--rename-command", "CONFIG", "");
    const lines: string[] = [];
    const log = (level: string, message: string) => void lines.push(`${level} ${message}`);
    const store = await open(`redis://127.0.0.1:${await startQuietProxy(redis.port)}`, { log });
    await login(store);
    expect(lines).toEqual([expect.stringMatching(/^warn .*does not report its maxmemory-policy/)]);
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
    onTestFinished(() => redis.stop());
    const reported = Promise.withResolvers<string>();
    const log = (level: string, message: string) => level === "error" && reported.resolve(message);
    const store = await openEarly(redis.url, { log });
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
    // The store notices the wrong setting even though no method is called.
    expect(await reported.promise).toContain("volatile-ttl");
    await expectUnavailable(store);
    await redis.admin.config("SET", "maxmemory-policy", "noeviction");
    await until(() => login(store)); // The store notices by itself that Redis can be used again.
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
      // On a busy machine, connecting may take longer than the start waits by default.
      const refusal = await open(url, { commandTimeoutMs: 10_000 }).catch((error: unknown) => error);
      expect(refusal).toBeInstanceOf(StoreRefused);
      expect(JSON.stringify(refusal) + String(refusal)).not.toContain("hunter2");
    }
    await (await open(redis.url.replace("//", "//:right@"))).ping();
  });

  test.each(["ZLEXCOUNT", "EVALSHA", "EVAL", "INFO", "SUBSCRIBE"])(
    "one that has renamed %s is refused at the start",
    async (command) => {
      const redis = await server("--rename-command", command, "");
      const refusal = `does not know commands, which may be renamed or switched off: ${command.toLowerCase()}`;
      await expect(open(redis.url)).rejects.toThrow(refusal);
    },
  );

  test("one whose scripts cannot check permissions names that alone", async () => {
    const { admin } = await server();
    const text = readLua("checks/permissions").replace("\n", "\nlocal redis = {}\n");
    expect(await admin.eval(text, 0, "info", "get {00}")).toEqual(["!redis.acl_check_cmd"]);
  });

  test("one that knows a command no more is an outage, not a bug, and no argument is repeated", async () => {
    const redis = await server("--appendonly", "yes", "--appendfsync", "always");
    const log: string[] = [];
    const store = await open(redis.url, { log: (_level, message) => void log.push(message) });
    const { sid } = await login(store);
    await redis.kill();
    await redis.start('rename-command EVALSHA ""\nrename-command EVAL ""');
    await until(() =>
      expect(log.join()).toContain("does not know commands, which may be renamed or switched off: eval"),
    );
    await expectUnavailable(store);
    await expect(store.find(sid)).rejects.toThrow(StoreUnavailable);
    expect(log.join()).not.toContain("with args");
  });

  test("one node of a cluster, named alone, is refused at the start", async () => {
    const redis = await server("--cluster-enabled", "yes", "--cluster-port", `${await freePort()}`);
    await expect(open(redis.url)).rejects.toThrow(/part of a cluster/);
  });
});
