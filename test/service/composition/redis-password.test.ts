/**
 * A password of Redis that changes while users refresh. Redis closes connections that still use the password before, as rented servers do.
 * `npm run proof:password` changes it every 10 s for 10 minutes.
 */
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { type ExpiringProxy, startExpiringProxy } from "../../support/expiring-proxy.ts";
import { startLoad } from "../../support/load.ts";
import { type RedisServer, startRedis, startRedisCluster, startReplica, startSentinel } from "../../support/redis.ts";
import { scratch, startService, waitFor, withKeys } from "../../support/service.ts";
import { logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const LONG = { times: 60, everyMs: 10_000, users: 16, way: "rare keep-alive" } as const;
const SHORT = { times: 3, everyMs: 0, users: 4, way: "keep-alive" } as const;
const { times, everyMs, users, way } = process.env.PROOF === "long" ? LONG : SHORT;
const ADMIN_TOKENS = "admin".repeat(8);
const USER = "service";

type World = {
  readonly env: Readonly<Record<string, string>>;
  readonly servers: readonly Expiring[];
  /** Returns the URL with a password, if the file has the whole URL. */
  readonly url?: (password: string) => string;
};
type Expiring = { readonly admin: Redis; readonly proxy: ExpiringProxy };

async function expiring(server: RedisServer): Promise<Expiring> {
  const proxy = await startExpiringProxy(server.port, USER);
  onTestFinished(() => proxy.stop());
  await setPassword(server.admin, `>${password(0)}`);
  return { admin: server.admin, proxy };
}

function stopLater<T extends { stop(): Promise<unknown> }>(started: T): T {
  onTestFinished(async () => void (await started.stop()));
  return started;
}

const password = (version: number) => `password-${version}`;
const setPassword = (admin: Redis, rule: string) => admin.call("ACL", "SETUSER", USER, "on", rule, "~*", "&*", "+@all");

const WORLDS = {
  async "a server with a replica"() {
    const redis = stopLater(await startRedis());
    stopLater(await startReplica(redis));
    const server = await expiring(redis);
    return {
      env: { REDIS_URL: `redis://127.0.0.1:${server.proxy.port}`, REDIS_WAIT_REPLICAS: "1" },
      servers: [server],
    };
  },
  async "a server whose URL is in a file"() {
    const server = await expiring(stopLater(await startRedis()));
    return {
      env: {},
      servers: [server],
      url: (password) => `redis://${USER}:${password}@127.0.0.1:${server.proxy.port}`,
    };
  },
  async "a cluster"() {
    const { nodes } = stopLater(await startRedisCluster());
    const servers = await Promise.all(nodes.map(expiring));
    for (const { admin, proxy } of servers) await admin.config("SET", "cluster-announce-port", proxy.port);
    return { env: { REDIS_URL: `redis+cluster://127.0.0.1:${servers[0]?.proxy.port}` }, servers };
  },
  async Sentinel() {
    const server = await expiring(stopLater(await startRedis()));
    const sentinel = await expiring(stopLater(await startSentinel(server.proxy)));
    const REDIS_URL = `redis+sentinel://127.0.0.1:${sentinel.proxy.port}/main`;
    return { env: { REDIS_URL, REDIS_SENTINEL_USERNAME: USER }, servers: [server, sentinel] };
  },
} as const satisfies Record<string, () => Promise<World>>;

test.for(Object.entries<() => Promise<World>>(WORLDS))(
  "no refresh fails when the password changes, on %s",
  async ([, open]) => {
    const { env, servers, url = (password: string) => password } = await open();
    const isUrl = !("REDIS_URL" in env);
    const file = join(scratch(), "password");
    const write = (version: number) => {
      writeFileSync(`${file}.new`, `${url(password(version))}\n`);
      renameSync(`${file}.new`, file);
    };
    write(0);
    const files = {
      ...(isUrl ? { REDIS_URL_FILE: file } : { REDIS_PASSWORD_FILE: file, REDIS_USERNAME: USER }),
      ...("REDIS_SENTINEL_USERNAME" in env && { REDIS_SENTINEL_PASSWORD_FILE: file }),
    };
    const service = stopLater(
      await startService({
        DATA_DIR: withKeys(),
        ADMIN_TOKENS,
        REUSE_INTERVAL: "0",
        // A busy machine may delay a reply. A password that is refused fails a request at once.
        REDIS_COMMAND_TIMEOUT: "5s",
        ...env,
        ...files,
      }),
    );
    const sessions = await Promise.all(Array.from({ length: users }, () => logIn(service)));
    const load = startLoad(
      service.publicUrl,
      way,
      sessions.map(({ refreshToken }) => `refresh_token=${refreshToken}`),
    );
    const used = () => servers.flatMap(({ proxy }) => proxy.passwords());
    for (let version = 1; version <= times; version++) {
      for (const { admin } of servers) await setPassword(admin, `>${password(version)}`);
      write(version);
      await until(() => expect(new Set(used())).toEqual(new Set([password(version)])));
      for (const { admin } of servers) await setPassword(admin, `<${password(version - 1)}`);
      for (const { proxy } of servers) expect(proxy.expireAllBut(password(version))).toBe(0);
      await sleep(everyMs);
    }
    await load.stop();
    if (process.env.PROOF === "long") console.log(`${load.requests()} refreshes, ${load.failures.length} failures`);
    expect(load.failures, service.stderr()).toEqual([]);
    expect(load.requests()).toBeGreaterThan(times);
    // New connections use the password, too.
    for (const { proxy } of servers) proxy.expireAllBut("");
    await until(async () => expect((await fetch(new URL("/readyz", service.publicUrl))).status).toBe(200));
    await until(() => expect(new Set(used())).toEqual(new Set([password(times)])));
    if (!isUrl) return;
    writeFileSync(file, "redis://:other@127.0.0.1:1\n");
    await waitFor(service, () => service.stderr().includes("it names another server or user: restart") || undefined);
    expect(service.stderr()).not.toMatch(/other@|password-\d/);
  },
);
