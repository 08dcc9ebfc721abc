import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Redis } from "ioredis";
import { afterEach, expect, test, vi } from "vitest";
import type { TlsFiles } from "../../../../src/service/config/redis-url.ts";
import { StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { createRedisConnections, disconnect } from "../../../../src/service/store/redis/connection/connection.ts";
import { announcersOf } from "../../../../src/service/store/redis/connection/sentinels.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import { selfSigned } from "../../../support/certificate.ts";
import { freePort } from "../../../support/free-port.ts";
import { RedisServer, sentinelConfig, startRedis, startSentinel } from "../../../support/redis.ts";
import { scratch } from "../../../support/service.ts";
import { redisOptions, target } from "../../../support/store/backends.ts";
import { newSession, nonce, outcomeOf, sidOf, subject } from "../../../support/store/sessions.ts";
import { until } from "../../../support/until.ts";

const cleanUp: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
  vi.restoreAllMocks();
});

test("when the master dies the store follows to the new one, with what replicas have acknowledged", async () => {
  const master = await startRedis("--repl-diskless-sync-delay", "0");
  cleanUp.push(() => master.stop());
  const replica = await startRedis("--replicaof", `127.0.0.1 ${master.port}`);
  cleanUp.push(() => replica.stop());
  await until(async () => expect(await master.admin.info("replication")).toContain("state=online"));
  const sentinel = await startSentinel(master);
  cleanUp.push(() => sentinel.stop());
  const url = `redis+sentinel://127.0.0.1:${sentinel.port}/main`;
  const store = await createRedisStore(redisOptions(url, { waitReplicas: 1, commandTimeoutMs: 1_000 }));
  cleanUp.push(() => store.close());
  const hints: string[] = [];
  const stop = store.onRevocation((hint) => hints.push(...hint.map(({ sid }) => sid)));

  const session = newSession(subject());
  const first = nonce();
  await until(() => store.create(session, first, { cap: 10 }));
  const ended = sidOf(subject());
  await until(() => store.end(ended, "logout"));
  await until(async () => expect(await sentinel.admin.call("SENTINEL", "CKQUORUM", "main")).toContain("OK"));
  await until(async () => expect(await sentinel.admin.call("SENTINEL", "REPLICAS", "main")).toHaveLength(1));

  await master.kill();
  await until(() => store.ping());
  expect(await replica.admin.info("replication")).toContain("role:master");
  // The Sentinel's announcement closes a connection that was made to the new master before it: a command on it is lost.
  const presented = { generation: 1, nonce: first, issuedAt: storeMs(0) };
  await until(async () =>
    expect(["rotate", "repeat"]).toContain(outcomeOf(await store.rotate(session.sid, presented, nonce()))),
  );
  await until(async () => expect(await store.find(ended)).toEqual({ ok: false, reason: "revoked" }));
  // The store acknowledges nothing while no replica is left, but subscribers get notifications from the new master.
  const before = hints.length;
  await until(async () => {
    await expect(store.end(sidOf(subject()), "logout")).rejects.toThrow(StoreUnavailable);
    expect(hints.length).toBeGreaterThan(before);
  });
  stop();
});

/** Starts two servers and a Sentinel that names the first one, to which a store connects. The Sentinel cannot demote the first one. */
async function aFollowedMaster() {
  const sentinelPasswordFile = join(scratch(), "password");
  writeFileSync(sentinelPasswordFile, "first");
  const master = await startRedis("--rename-command", "SLAVEOF", "unknown", "--repl-diskless-sync-delay", "0");
  cleanUp.push(() => master.stop());
  const replica = await startRedis("--replicaof", `127.0.0.1 ${master.port}`);
  cleanUp.push(() => replica.stop());
  await until(async () => expect(await master.admin.info("replication")).toContain("state=online"));
  const sentinel = await startSentinel(master, "user service on >first ~* &* +@all");
  cleanUp.push(() => sentinel.stop());
  const url = `redis+sentinel://127.0.0.1:${sentinel.port}/main`;
  const sentinels = { ...target(url), sentinelUsername: "service", sentinelPasswordFile };
  const store = await createRedisStore(redisOptions(url, { target: sentinels }));
  cleanUp.push(() => store.close());
  await until(() => store.ping());
  /** Whether the Sentinel has a connection on which it announces failovers. */
  const isFollowed = async () => expect(await sentinel.admin.client("LIST")).toMatch(/ sub=1 /);
  /** Whether the replica has what the store acknowledges. */
  const takesWrites = async () => {
    const before = await replica.admin.dbsize();
    await store.create(newSession(subject()), nonce(), { cap: 10 });
    expect(await replica.admin.dbsize()).toBeGreaterThan(before);
  };
  return { master, replica, sentinel, sentinelPasswordFile, isFollowed, takesWrites };
}

test("a planned failover after a restart of the Sentinels takes the store to the new master", async () => {
  const { master, replica, sentinel, isFollowed, takesWrites } = await aFollowedMaster();
  await until(isFollowed);
  await sentinel.kill();
  await sentinel.start(sentinelConfig(master, "user service on >first ~* &* +@all"));
  await until(isFollowed);
  await until(async () => expect(await sentinel.admin.call("SENTINEL", "REPLICAS", "main")).toHaveLength(1));
  await until(async () => expect(await sentinel.admin.call("SENTINEL", "FAILOVER", "main")).toBe("OK"));
  await until(async () => expect(await replica.admin.info("replication")).toContain("role:master"));
  await until(takesWrites);
});

test("a failover while no Sentinel is connected takes the store to the new master, also with another password", async () => {
  const printed = vi.spyOn(console, "error");
  const { replica, sentinel, sentinelPasswordFile, isFollowed, takesWrites } = await aFollowedMaster();
  await until(isFollowed);
  await sentinel.kill();
  await replica.admin.replicaof("NO", "ONE");
  writeFileSync(sentinelPasswordFile, "second");
  await sentinel.start(sentinelConfig(replica, "user service on >second ~* &* +@all"));
  await until(takesWrites);
  expect(printed).not.toHaveBeenCalled();
});

test("a Sentinel that starts after the store tells it of a failover that the others did not live to announce", async () => {
  const [master, other] = [await startRedis(), await startRedis()];
  const first = await startSentinel(master);
  const late = new RedisServer(await freePort(), ["--sentinel"]);
  cleanUp.push(...[master, other, first, late].map((server) => () => server.stop()));
  const url = `redis+sentinel://127.0.0.1:${first.port},127.0.0.1:${late.port}/main`;
  const store = await createRedisStore(redisOptions(url));
  cleanUp.push(() => store.close());
  await until(() => store.ping());
  await until(async () => expect(await first.admin.client("LIST")).toMatch(/ sub=1 /));
  await first.kill();
  await late.start(sentinelConfig(other));
  await until(async () => {
    const before = await other.admin.dbsize();
    await store.create(newSession(subject()), nonce(), { cap: 10 });
    expect(await other.admin.dbsize()).toBeGreaterThan(before);
  });
});

test("a Sentinel that falls silent while it is followed again leaves no promise that rejects unheard", async () => {
  const unheard: unknown[] = [];
  const hear = (reason: unknown) => void unheard.push(reason);
  process.on("unhandledRejection", hear);
  cleanUp.push(async () => void process.off("unhandledRejection", hear));
  const master = await startRedis();
  const sentinel = await startSentinel(master);
  const connections = createRedisConnections(target(`redis+sentinel://127.0.0.1:${sentinel.port}/main`), 500);
  const client = connections.connect().on("error", () => {}) as Redis;
  cleanUp.push(...[master, sentinel].map((server) => () => server.stop()), async () => connections.close());
  await until(async () => expect(await sentinel.admin.client("LIST")).toMatch(/ sub=1 /));
  const [announcer] = announcersOf(client);
  await sentinel.kill();
  let received = "";
  const silent = createServer((socket) =>
    socket.on("data", (bytes) => {
      received += bytes;
      // It refuses the greeting, and has no reply to what follows.
      if (!received.includes("subscribe"))
        socket.write("-ERR unknown command 'HELLO'\r\n".repeat(`${bytes}`.split("*").length - 1));
    }),
  ).listen(sentinel.port);
  cleanUp.push(async () => void silent.close());
  await until(() => expect(received).toContain("subscribe"));
  disconnect(client);
  await until(() => expect(announcer?.status).toBe("end"));
  await new Promise(setImmediate);
  expect(unheard).toEqual([]);
});

test("why no Sentinel names the master is logged once, and what waiting does not correct is refused", async () => {
  const open = async (
    url: string,
    more: { sentinelPassword?: string } = {},
    log?: (level: string, line: string) => void,
  ) => {
    const store = await createRedisStore(
      redisOptions(url, { target: { ...target(url), ...more }, ...(log && { log }) }),
    );
    cleanUp.push(() => store.close());
    return store;
  };
  const master = await startRedis();
  cleanUp.push(() => master.stop());
  const sentinel = await startSentinel(master, "user default on >of-sentinels ~* &* +@all");
  cleanUp.push(() => sentinel.stop());
  const url = `redis+sentinel://127.0.0.1:${sentinel.port}`;
  const sentinelPassword = "of-sentinels";
  await expect(open(`${url}/main`)).rejects.toThrow("the Sentinels refuse our credentials (NOAUTH)");
  await expect(open(`${url}/main`, { sentinelPassword: "x" })).rejects.toThrow("refuse our credentials (WRONGPASS)");
  await expect(open(`${url}/other`, { sentinelPassword })).rejects.toThrow(
    "no Sentinel names the master other: ERR No such",
  );
  const closed = await freePort();
  const lines: string[] = [];
  const store = await open(`redis+sentinel://127.0.0.1:${closed}/main`, {}, (_level, line) => lines.push(line));
  const late = new RedisServer(closed, ["--sentinel"]);
  cleanUp.push(() => late.stop());
  await late.start(sentinelConfig(master));
  await until(() => store.ping());
  const fault = `Redis: no Sentinel names the master main: connect ECONNREFUSED 127.0.0.1:${closed}`;
  expect(lines.filter((line) => line.includes("Sentinel"))).toEqual([fault]);
});

/** Starts a Redis that listens with TLS on a second port, under a self-signed certificate. */
async function aTlsRedis(...args: readonly string[]) {
  const { cert, key } = selfSigned();
  const directory = scratch();
  const files = { cert: join(directory, "cert.pem"), key: join(directory, "key.pem") };
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key);
  const tls = {
    "tls-cert-file": files.cert,
    "tls-key-file": files.key,
    "tls-ca-cert-file": files.cert,
    "tls-auth-clients": "no",
    "tls-replication": "yes",
  };
  const tlsPort = await freePort();
  const given = Object.entries(tls).flatMap(([name, value]) => [`--${name}`, value]);
  const server = await startRedis("--tls-port", `${tlsPort}`, ...given, ...args);
  cleanUp.push(() => server.stop());
  return { tlsPort, tlsFiles: { ca: files.cert }, config: Object.entries(tls).map((line) => line.join(" ")) };
}

test("Redis over TLS is checked against the authorities that were given, and refused without them", async () => {
  const { tlsPort, tlsFiles } = await aTlsRedis();
  const url = `rediss://localhost:${tlsPort}`;
  const trusting = await createRedisStore(redisOptions(url, { target: { ...target(url), tlsFiles } }));
  cleanUp.push(() => trusting.close());
  await until(() => trusting.ping());
  const otherFile = join(scratch(), "other.pem");
  writeFileSync(otherFile, selfSigned().cert);
  const other = await createRedisStore(redisOptions(url, { target: { ...target(url), tlsFiles: { ca: otherFile } } }));
  cleanUp.push(() => other.close());
  await expect(other.ping()).rejects.toThrow(StoreUnavailable);
});

test("Sentinels over TLS and with a password of their own are asked for the master", async () => {
  const { tlsPort, tlsFiles, config } = await aTlsRedis("--requirepass", "of-redis", "--masterauth", "of-redis");
  const sentinelPort = await freePort();
  const more = [...config, `tls-port ${sentinelPort}`, "user default on >of-sentinels ~* &* +@all"].join("\n");
  const auth = "sentinel auth-pass main of-redis";
  const sentinel = await startSentinel({ port: tlsPort }, more, auth);
  cleanUp.push(() => sentinel.stop());
  const url = `rediss+sentinel://:of-redis@localhost:${sentinelPort}/main`;
  const open = async (more: { tlsFiles?: TlsFiles; sentinelUsername?: string; sentinelPassword?: string }) => {
    const store = await createRedisStore(redisOptions(url, { target: { ...target(url), ...more } }));
    cleanUp.push(() => store.close());
    return store;
  };
  const store = await open({ tlsFiles, sentinelUsername: "default", sentinelPassword: "of-sentinels" });
  await until(() => store.ping());
  const nameless = await open({ tlsFiles, sentinelPassword: "of-sentinels" });
  await until(() => nameless.ping());
  for (const wrong of [{ tlsFiles }, { tlsFiles, sentinelPassword: "another" }]) {
    await expect(open(wrong)).rejects.toThrow("the Sentinels refuse our credentials");
  }
  await expect((await open({ sentinelPassword: "of-sentinels" })).ping()).rejects.toThrow(StoreUnavailable);
});
