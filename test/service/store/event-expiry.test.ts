/** Both stores delete events at the end of their retention. */
import { afterEach, expect, test } from "vitest";
import { storeMs } from "../../../src/service/session/time.ts";
import { TAGS, tagOfSession } from "../../../src/service/store/redis/partitions.ts";
import { createRedisStore } from "../../../src/service/store/redis/store.ts";
import { startRedis } from "../../support/redis.ts";
import { embeddedBackend, redisOptions } from "../../support/store/backends.ts";
import { loginWith, recordOf } from "../../support/store/event-records.ts";
import { SECOND, subject } from "../../support/store/sessions.ts";

const cleanUp: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

test("the embedded store returns none that has expired, and removes them as others come", async () => {
  const backend = await embeddedBackend();
  cleanUp.push(() => backend.stop());
  const store = await backend.open();
  const user = subject();
  const { sid } = await loginWith(store, user);
  await store.recordEvents([recordOf({ time: storeMs(1), type: "elevated", sid, subject: user })], 10 * SECOND);
  await backend.advance(9 * SECOND);
  expect(await store.events({ sid })).toHaveLength(1);
  await backend.advance(SECOND);
  expect(await store.events({ sid })).toEqual([]);
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
