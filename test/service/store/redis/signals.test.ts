/** After a failover to older data, all signals in that data are delivered, and former holders of a lease cannot move cursors. */
import { Cluster, Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { wallMs } from "../../../../src/service/session/time.ts";
import type { Cursor } from "../../../../src/service/signals/ports.ts";
import { TAGS, tagOfSession, tagOfSubject } from "../../../../src/service/store/redis/partitions.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import { startRedis, startRedisCluster } from "../../../support/redis.ts";
import { movable, redisOptions } from "../../../support/store/backends.ts";
import { server } from "../../../support/store/redis.ts";
import { newSession, nonce, subject } from "../../../support/store/sessions.ts";
import { until } from "../../../support/until.ts";

const LEASE_MS = 60_000;
const MINUTE_MS = 60_000;
const NONE = { delivered: 0, deadLetters: 0 };
const DEFINITION = { kind: "webhook", endpoint: "https://a.test/", filter: {}, audience: [] } as const;

async function aStore() {
  const redis = await server();
  const store = await createRedisStore(redisOptions(redis.url, { commandTimeoutMs: 5_000 }));
  await store.ping();
  await store.signals.subscriptions.create("sub", DEFINITION, wallMs(0));
  const user = subject();
  const { log } = store.signals;
  const keys = ["g", "z", "f"].map((key) => `${tagOfSubject(user)}${key}`);
  return {
    store,
    log,
    async endOne() {
      const session = newSession(user);
      await store.create(session, nonce(), { cap: 100 });
      await store.end(session.sid, "logout");
      return { sid: session.sid, partition: log.partitionOf(session) };
    },
    async leaseOf(partition: number, holder: string) {
      const [lease] = await log.lease([partition], holder, LEASE_MS);
      if (lease === undefined) throw new Error("no lease");
      return lease;
    },
    async readFrom(partition: number, cursor = "") {
      const after = cursor || (await log.cursors(partition)).get("sub");
      const read = await log.read(partition, after as Parameters<typeof log.read>[1], 10);
      return read.ok ? read.signals.map((one) => ({ sid: one.signal.sessionId, cursor: one.cursor })) : read.reason;
    },
    /** Copies the current data to replicas. @returns a function that fails over to them */
    async replicate() {
      const dumps = await Promise.all(keys.map((key) => redis.admin.dumpBuffer(key)));
      return async () => {
        for (const [at, key] of keys.entries()) await redis.admin.restore(key, 0, dumps[at] ?? "", "REPLACE");
      };
    },
  };
}

test("a reader that is ahead of the data reads again from the stored cursor", async () => {
  const { store, log, endOne, leaseOf, readFrom, replicate } = await aStore();
  const { sid: first, partition } = await endOne();
  const lease = await leaseOf(partition, "one");
  const failOver = await replicate();
  const { sid: lost } = await endOne();
  const read = await readFrom(partition);
  expect(read).toMatchObject([{ sid: first }, { sid: lost }]);
  const ahead = typeof read === "string" ? undefined : read[1]?.cursor;
  if (ahead === undefined) throw new Error("no cursor");
  await failOver();
  expect(await readFrom(partition, ahead)).toBe("rewound");
  const { sid: next } = await endOne(); // This signal gets the sequence number of the lost one.
  expect(await readFrom(partition, ahead)).toBe("rewound");
  expect(await log.advance(lease, "sub", ahead, NONE)).toEqual({ ok: false, reason: "rewound" });
  expect(await readFrom(partition)).toMatchObject([{ sid: first }, { sid: next }]);
  await store.close();
});

test("a poll, which reads all cursors of one subscription, takes few scripts", async () => {
  const redis = await server();
  const store = await createRedisStore(redisOptions(redis.url, { commandTimeoutMs: 5_000 }));
  await store.signals.subscriptions.create("polled", DEFINITION, wallMs(0));
  const scripts = async () =>
    [...(await redis.admin.info("commandstats")).matchAll(/cmdstat_evalsha:calls=(\d+)/g)].map(([, calls]) =>
      Number(calls),
    )[0] ?? 0;
  const before = await scripts();
  expect((await store.signals.log.positions("polled")).filter((cursor) => cursor !== "")).toHaveLength(TAGS.length);
  expect(await store.signals.subscriptions.get("polled")).toMatchObject({ id: "polled", delivered: 0 });
  expect((await scripts()) - before).toBeLessThan(16);
  await store.close();
});

test("one subscription is read without the definitions of the others", async () => {
  const redis = await server();
  const store = await createRedisStore(redisOptions(redis.url, { commandTimeoutMs: 5_000 }));
  const { subscriptions } = store.signals;
  await subscriptions.create("small", DEFINITION, wallMs(0));
  await subscriptions.create(
    "large",
    { ...DEFINITION, endpoint: `https://a.test/${"x".repeat(1_000_000)}` },
    wallMs(0),
  );
  const sent = async () => Number(/total_net_output_bytes:(\d+)/.exec(await redis.admin.info("stats"))?.[1]);
  const before = await sent();
  expect(await subscriptions.get("small")).toMatchObject({ id: "small", state: "active" });
  expect((await sent()) - before).toBeLessThan(500_000);
  expect(await subscriptions.get("unknown")).toBeUndefined();
  await store.close();
});

test("a lease that the data does not know moves no cursor", async () => {
  const { store, log, endOne, leaseOf, readFrom, replicate } = await aStore();
  const { partition } = await endOne();
  const former = await leaseOf(partition, "one");
  const failOver = await replicate();
  await log.release([former]);
  const lost = await leaseOf(partition, "two");
  await failOver();
  const read = await readFrom(partition);
  const cursor = typeof read === "string" ? undefined : read[0]?.cursor;
  if (cursor === undefined) throw new Error("no cursor");
  expect(await log.advance(lost, "sub", cursor, NONE)).toEqual({ ok: false, reason: "lost" });
  await log.release([former]);
  const next = await leaseOf(partition, "three");
  expect(next.fence).toBe(lost.fence); // Two leases have this number, so another field must distinguish them.
  expect(await log.advance(lost, "sub", cursor, NONE)).toEqual({ ok: false, reason: "lost" });
  expect(await log.advance(next, "sub", cursor, { delivered: 1, deadLetters: 0 })).toEqual({ ok: true });
  expect(await store.signals.subscriptions.list()).toMatchObject([{ delivered: 1 }]);
  await store.close();
});

test.each([
  ["a server", async () => ({ url: (await server()).url, stop: async () => {} })],
  ["a cluster", startRedisCluster],
])("what a killed instance has left of a creation or a deletion is finished by a repair: %s", async (_, start) => {
  const { url, stop } = await start();
  const store = await createRedisStore(redisOptions(url, { commandTimeoutMs: 5_000 }));
  await store.ping();
  const { subscriptions, log } = store.signals;
  const admin = url.includes(",") ? new Cluster(url.replace(/^.*\/\//, "").split(",")) : new Redis(url);
  for (const id of ["created", "deleted"]) await subscriptions.create(id, DEFINITION, wallMs(0));
  // Simulates an instance that was killed after the first hundred partitions, while it created one subscription and deleted another.
  await Promise.all(TAGS.slice(100).map((tag) => admin.hdel(`${tag}f`, "created")));
  await admin.hdel(`${TAGS[0]}b`, "deleted", "=deleted");
  await Promise.all(TAGS.slice(0, 100).map((tag) => admin.hdel(`${tag}f`, "deleted")));
  await subscriptions.repair();
  const cursors = await Promise.all(TAGS.map((_, partition) => log.cursors(partition)));
  expect(new Set(cursors.map((each) => [...each.keys()].join()))).toEqual(new Set(["created"]));
  expect(await subscriptions.get("created")).toEqual((await subscriptions.list())[0]);
  admin.disconnect();
  await store.close();
  await stop();
});

test("what Redis would drop is kept until the signal of its end is there, with its subject", async () => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  let now = Date.now() + 48 * 60 * MINUTE_MS; // The test's clock is ahead of Redis's own clock, by which Redis would otherwise expire keys.
  const setClock = () => Promise.all(TAGS.map((tag) => redis.admin.set(`${tag}clock`, now)));
  await setClock();
  const store = await createRedisStore(
    redisOptions(
      redis.url,
      movable(() => now),
    ),
  );
  onTestFinished(() => store.close());
  await until(() => store.ping());
  const { log, subscriptions } = store.signals;
  await subscriptions.create("late", DEFINITION, wallMs(0));
  const session = newSession(subject(), { idleTimeoutMs: MINUTE_MS });
  await store.create(session, nonce(), { cap: 100, origin: {} });
  await store.revokeAll(undefined, {});
  // During a quarter of an hour nobody reads the signal log. Once a minute an instance searches for expired sessions.
  const record = `${tagOfSession(session.sid)}s${session.sid}`;
  for (let minute = 0; minute < 15; minute++) {
    now += MINUTE_MS;
    await setClock();
    while (!(await store.expire()).isDone);
    if ((await redis.admin.pexpiretime(record)) <= now) await redis.admin.del(record);
  }
  const partition = log.partitionOf(session);
  const read = await log.read(partition, (await log.cursors(partition)).get("late") as Cursor, 10);
  expect(read.ok && read.signals.map(({ signal }) => signal)).toMatchObject([
    { sessionId: session.sid, subject: session.subject, clientId: session.clientId, reason: "revoked_all" },
  ]);
});
