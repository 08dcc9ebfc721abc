import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { TlsFiles } from "../../../../src/service/config/redis-url.ts";
import { StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import { selfSigned } from "../../../support/certificate.ts";
import { freePort } from "../../../support/free-port.ts";
import { startRedis, startSentinel } from "../../../support/redis.ts";
import { scratch } from "../../../support/service.ts";
import { redisOptions, target } from "../../../support/store/backends.ts";
import { newSession, nonce, outcomeOf, sidOf, subject } from "../../../support/store/sessions.ts";
import { until } from "../../../support/until.ts";

const cleanUp: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
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
  for (const wrong of [{ tlsFiles }, { tlsFiles, sentinelPassword: "another" }, { sentinelPassword: "of-sentinels" }]) {
    await expect((await open(wrong)).ping()).rejects.toThrow(StoreUnavailable);
  }
});
