/** What only Redis has of a subject: records of expired sessions that nothing names, and due records of many sessions. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import type { StoreWithSignals } from "../../../../src/service/signals/ports.ts";
import { tagOfSession, tagOfSubject } from "../../../../src/service/store/redis/partitions.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import { type RedisServer, startRedis } from "../../../support/redis.ts";
import { redisOptions } from "../../../support/store/backends.ts";
import { loginWith, recordOf } from "../../../support/store/event-records.ts";
import { nonce, outcomeOf, sidOf, subject } from "../../../support/store/sessions.ts";
import { until } from "../../../support/until.ts";

let redis: RedisServer;
let store: StoreWithSignals;
beforeAll(async () => {
  redis = await startRedis();
  store = await createRedisStore(redisOptions(redis.url, { commandTimeoutMs: 5_000 }));
});
afterAll(async () => {
  await store.close();
  await redis.stop();
});

test("the record of a session that has expired keeps its times and its client alone, and the reason for a refusal", async () => {
  const user = subject("expired");
  const client = { userAgent: "browser of the user", ipAddress: "192.0.2.7", displayName: "laptop" };
  const clientId = "c".repeat(300);
  const upstream = { issuer: "https://login.example.com", sessionId: "at the provider", subject: user };
  const more = { client, clientId, claims: '{"role":"x"}', upstream };
  const { sid, first } = await loginWith(store, user, { idleTimeoutMs: 1, ...more });
  expect(await redis.admin.keys("*}U*")).toHaveLength(2);
  await until(async () => expect((await store.find(sid)).ok).toBe(false));
  await until(async () => {
    const { ended } = await store.expire();
    expect(ended).toEqual([{ sid, subject: user }]);
  });
  const record = String(await redis.admin.get(`${tagOfSession(sid)}s${sid}`));
  for (const text of [user, client.userAgent, client.ipAddress, client.displayName, "role"]) {
    expect(record).not.toContain(text);
  }
  expect(record).toContain(clientId);
  expect(await redis.admin.keys("*}U*")).toEqual([]);
  expect(outcomeOf(await store.rotate(sid, first, nonce()))).toBe("idle");
});

test("what an instance of 0.2 leaves of the creation when it ends a session is removed, too", async () => {
  const user = subject();
  const { sid } = await loginWith(store, user, {}, {});
  await store.recordEvents([recordOf({ time: storeMs(1), type: "created", sid, subject: user })], 60_000);
  const notes = `${tagOfSubject(user)}C`;
  await store.end(sid, "logout");
  await redis.admin.hset(notes, sid, '{"a":"192.0.2.7"}');
  await store.forget(user);
  expect(await redis.admin.hget(notes, sid)).toBeNull();
});

test("a subject is not forgotten while too many events are still to be recorded to find those of it", async () => {
  const user = subject();
  const due = `${tagOfSubject(user)}r`;
  const others = Array.from({ length: 1_100 }, () => [sidOf(user), `1\n1\nlogout\n{}\nsomebody`]);
  await redis.admin.hset(due, ...others.flat());
  await expect(store.forget(user)).rejects.toThrow(StoreUnavailable);
  await redis.admin.hdel(due, ...others.slice(0, 200).map(([sid = ""]) => sid));
  await redis.admin.hset(due, sidOf(user), `1\n1\nlogout\n{}\n${user}`);
  expect(await store.forget(user)).toEqual({ events: 0, signals: 0 });
  const left = Object.values(await redis.admin.hgetall(due));
  expect(left).toHaveLength(900);
  expect(left.join()).not.toContain(user);
});

test("the log of signals keeps its expiry, also if its only signal is that of the subject", async () => {
  const { subscriptions } = store.signals;
  const webhook = { kind: "webhook", endpoint: "https://a.test/", filter: {}, audience: [] } as const;
  await subscriptions.create("only", webhook, wallMs(1));
  const user = subject();
  const { sid } = await loginWith(store, user);
  await store.end(sid, "logout");
  const log = `${tagOfSubject(user)}z`;
  const before = await redis.admin.pexpiretime(log);
  expect(before).toBeGreaterThan(0);
  expect(await store.forget(user)).toEqual({ events: 0, signals: 1 });
  expect(await redis.admin.pexpiretime(log)).toBe(before);
  await subscriptions.delete("only");
});

test("no key is left of a subject with many sessions, all of which have expired", async () => {
  const user = subject("many");
  const created = await Promise.all(
    Array.from({ length: 300 }, () => loginWith(store, user, { idleTimeoutMs: 1_000 })),
  );
  const index = `${tagOfSubject(user)}i${user}`;
  expect(await redis.admin.zcard(index)).toBeGreaterThan(2 * 128);
  await until(async () => {
    const found = await Promise.all(created.map(({ sid }) => store.find(sid)));
    expect(found.filter(({ ok }) => ok)).toEqual([]);
  });
  await store.forget(user);
  expect(await redis.admin.keys(`*${user}*`)).toEqual([]);
});
