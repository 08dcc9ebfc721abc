/** Both stores delete events at the end of their retention. */
import { afterEach, expect, test } from "vitest";
import { storeMs } from "../../../src/service/session/time.ts";
import { TAGS, tagOfSession } from "../../../src/service/store/redis/partitions.ts";
import { createRedisStore } from "../../../src/service/store/redis/store.ts";
import { startRedis } from "../../support/redis.ts";
import { embeddedBackend, redisOptions } from "../../support/store/backends.ts";
import { loginWith, recordOf } from "../../support/store/event-records.ts";
import { ABSOLUTE, IDLE, SECOND, sidOf, subject } from "../../support/store/sessions.ts";
import { until } from "../../support/until.ts";

const cleanUp: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

async function openEmbedded() {
  const backend = await embeddedBackend();
  cleanUp.push(() => backend.stop());
  return { backend, store: await backend.open(), user: subject() };
}

test("the embedded store returns none that has expired, and removes them as others come", async () => {
  const { backend, store, user } = await openEmbedded();
  const { sid } = await loginWith(store, user);
  await store.recordEvents([recordOf({ time: storeMs(1), type: "elevated", sid, subject: user })], 10 * SECOND);
  await backend.advance(9 * SECOND);
  expect(await store.events({ sid })).toHaveLength(1);
  await backend.advance(SECOND);
  expect(await store.events({ sid })).toEqual([]);
});

test("the embedded store keeps the creation for as long as the session, and then for the retention", async () => {
  const { backend, store, user } = await openEmbedded();
  const { sid } = await loginWith(store, user, {}, {});
  await store.recordEvents([recordOf({ time: storeMs(1), type: "created", sid, subject: user })], 10 * SECOND);
  await backend.advance(10 * SECOND);
  expect(await store.events({ sid })).toHaveLength(1);
  await store.end(sid, "logout", {});
  await store.recordEvents([recordOf({ time: storeMs(2), type: "ended", sid, reason: "logout" })], 10 * SECOND);
  await backend.advance(9 * SECOND);
  expect(await store.events({ sid })).toHaveLength(2);
  await backend.advance(SECOND);
  expect(await store.events({ sid })).toEqual([]);
});

test("the embedded store keeps the creation of a session that ended with all others no longer than that of one that has expired", async () => {
  const { backend, store, user } = await openEmbedded();
  const { sid } = await loginWith(store, user, {}, {});
  const [time, retention] = [storeMs(1), 10 * SECOND];
  await store.recordEvents([recordOf({ time, type: "created", sid, subject: user })], retention);
  await store.revokeAll(undefined, {});
  await store.recordEvents([recordOf({ time, type: "elevated", sid, subject: user })], 2 * IDLE);
  await backend.advance(IDLE);
  expect(await store.expire()).toMatchObject({ ended: [], isDone: true });
  await backend.advance(retention - SECOND);
  expect(await store.events({ sid })).toHaveLength(2);
  await backend.advance(SECOND);
  expect(await store.events({ sid })).toMatchObject([{ type: "elevated" }]);
});

test("in Redis the creation is kept for as long as the session, and then for the retention", async () => {
  const redis = await startRedis();
  cleanUp.push(() => redis.stop());
  const store = await createRedisStore(redisOptions(redis.url, { commandTimeoutMs: 5_000 }));
  cleanUp.push(() => store.close());
  const user = subject();
  const { sid } = await loginWith(store, user, {}, {});
  const [tag, notes] = [tagOfSession(sid), `${tagOfSession(sid)}C`];
  const record = (event: Parameters<typeof recordOf>[0], retentionMs = 60 * SECOND) =>
    store.recordEvents([recordOf(event)], retentionMs);
  await record({ time: storeMs(1), type: "created", sid, subject: user, address: "192.0.2.7" });
  expect(await redis.admin.hgetall(notes)).toEqual({ "*": `${60 * SECOND}`, [sid]: '{"a":"192.0.2.7"}' });
  expect(await redis.admin.pttl(notes)).toBeGreaterThan(ABSOLUTE);
  expect(await redis.admin.keys(`${tag}[vw]*`)).toEqual([]);
  // What an instance of 0.2 leaves when it ends a session goes as others are created.
  const left = Array.from({ length: 10 }, () => [sidOf(user), "{}"]);
  await redis.admin.hset(notes, ...left.flat());
  await until(async () => {
    const { sid: other } = await loginWith(store, user, {}, {});
    await record({ time: storeMs(1), type: "created", sid: other, subject: user });
    await store.end(other, "logout");
    expect(await redis.admin.hkeys(notes)).toEqual(["*", sid]);
  });
  await store.end(sid, "logout", {});
  expect(await redis.admin.hgetall(notes)).toEqual({ "*": `${60 * SECOND}` });
  for (const key of [`${tag}v${sid}`, `${tag}w${user}`]) {
    expect(await redis.admin.pttl(key)).toSatisfy((ms: number) => ms > 0 && ms <= 60 * SECOND);
  }
  // The list of the subject does not live longer for an event without a subject, so the events do not either.
  await record({ time: storeMs(2), type: "ended", sid, reason: "logout" }, ABSOLUTE);
  expect(await store.events({ sid })).toHaveLength(2);
  expect(await redis.admin.pttl(`${tag}v${sid}`)).toBeLessThanOrEqual(60 * SECOND);
});

test("in Redis a creation leaves nothing at the end of its session once events are not kept", async () => {
  const redis = await startRedis();
  cleanUp.push(() => redis.stop());
  const store = await createRedisStore(redisOptions(redis.url, { commandTimeoutMs: 5_000 }));
  cleanUp.push(() => store.close());
  const user = subject();
  const [{ sid }, { sid: other }] = [await loginWith(store, user, {}, {}), await loginWith(store, user, {}, {})];
  await store.recordEvents([recordOf({ time: storeMs(1), type: "created", sid, subject: user })], 60 * SECOND);
  await store.recordEvents([recordOf({ time: storeMs(1), type: "created", sid: other, subject: user })], 0);
  await store.end(sid, "logout");
  await store.end(other, "logout");
  expect(await redis.admin.keys(`${tagOfSession(sid)}[vw]*`)).toEqual([]);
  expect(await redis.admin.hgetall(`${tagOfSession(sid)}C`)).toEqual({ "*": "0" });
});

test("in Redis all keys of events expire when their time is over", async () => {
  const redis = await startRedis();
  cleanUp.push(() => redis.stop());
  const store = await createRedisStore(redisOptions(redis.url, { commandTimeoutMs: 5_000 }));
  cleanUp.push(() => store.close());
  const user = subject();
  const { sid } = await loginWith(store, user);
  const revokedUntil = await store.revokeAll(storeMs(2), {});
  await store.recordEvents([recordOf({ time: storeMs(1), type: "elevated", sid, subject: user })], 60 * SECOND);
  await store.recordEvents([recordOf({ time: storeMs(1), type: "all_ended", revokedUntil })], 60 * SECOND);
  for (const key of [`${tagOfSession(sid)}v${sid}`, `${tagOfSession(sid)}w${user}`, `${TAGS[0]}x`]) {
    const left = await redis.admin.pttl(key);
    expect(left).toBeGreaterThan(0);
    expect(left).toBeLessThanOrEqual(60 * SECOND);
  }
});
