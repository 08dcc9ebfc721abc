/** The memory that a session takes in Redis. The goal is 350 bytes, including its entries in both indexes. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SessionStore } from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { encodeBody } from "../../../../src/service/store/redis/encoding/record.ts";
import { TAGS, tagOfSession } from "../../../../src/service/store/redis/partitions.ts";
import { loadScripts } from "../../../../src/service/store/redis/scripts.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import { type RedisServer, startRedis } from "../../../support/redis.ts";
import { MOVABLE_CLOCK, redisOptions } from "../../../support/store/backends.ts";
import { someKey } from "../../../support/store/device.ts";
import { IDLE, newSession, nonce } from "../../../support/store/sessions.ts";

let server: RedisServer;
let store: SessionStore;
let clock = 0;

beforeAll(async () => {
  server = await startRedis();
  store = await createRedisStore(
    redisOptions(server.url, { scripts: loadScripts(MOVABLE_CLOCK), steady: () => clock, commandTimeoutMs: 10_000 }),
  );
  await setClock(Date.now());
});
afterAll(async () => {
  await store.close();
  await server.stop();
});

async function setClock(now: number): Promise<void> {
  clock = now;
  await Promise.all(TAGS.map((tag) => server.admin.set(`${tag}clock`, now)));
}

async function usedMemory(): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await server.admin.info("memory"))?.[1]);
}

async function logins(count: number, name: string, userAgent = ""): Promise<void> {
  for (let at = 0; at < count; at += 500) {
    const batch = Array.from({ length: Math.min(500, count - at) }, (_, k) =>
      newSession(`${name}${at + k}`, { client: { userAgent, ipAddress: "", displayName: "" } }),
    );
    await Promise.all(batch.map((session) => store.create(session, nonce(), { cap: 10 })));
  }
}

/** Returns how many bytes each of this many sessions takes in an empty Redis. */
async function cost(count: number, userAgent = ""): Promise<number> {
  await server.admin.flushall("SYNC");
  await setClock(Date.now());
  await logins(1, "warm-");
  const before = await usedMemory();
  await logins(count, "user", userAgent);
  return ((await usedMemory()) - before) / count;
}

/**
 * The memory that each of the 256 partitions takes apart from its sessions, in bytes. It hardly counts if there are more than ten thousand
 * sessions.
 */
const PARTITION = 1_024;

// With 34,000 keys Redis has just doubled its hash tables, so that each key takes the most memory.
test.each([
  [1_000, 350 + (256 * PARTITION) / 1_000],
  [34_000, 350],
])("one of %i with a short subject, no claims and no client data costs at most %i", async (count, most) => {
  expect(await cost(count)).toBeLessThan(most);
});

test("a user agent of 100 characters costs little more than its text", async () => {
  const agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36...";
  expect(agent).toHaveLength(100);
  expect((await cost(17_000, agent)) - (await cost(17_000))).toBeLessThan(136);
});

const ENTRY_BYTES = 29;

/** Checks that entries of expired sessions are removed. @param sizeOf counts the entries of a partition */
async function expectUpkeep(sizeOf: (tag: string) => Promise<number>, upkeep = async () => {}): Promise<void> {
  const entries = async () => (await Promise.all(TAGS.map(sizeOf))).reduce((sum, size) => sum + size, 0);
  await server.admin.flushall("SYNC");
  const now = Date.now();
  await setClock(now);
  await logins(5_000, "gone");
  expect(await entries()).toBe(5_000);
  await setClock(now + IDLE);
  await logins(5_000, "live");
  await upkeep();
  expect(await entries()).toBeLessThan(6_500);
  await logins(5_000, "more");
  expect(await entries()).toBeLessThan(10_250);
}

test("a device key is what a session with one has more: its bytes and 41; one without has none", async () => {
  const session = newSession("bound");
  const first = nonce();
  await store.create(session, first, { cap: 10 });
  const key = `${tagOfSession(session.sid)}s${session.sid}`;
  const HEAD_BYTES = 55;
  expect(await server.admin.strlen(key)).toBe(HEAD_BYTES + encodeBody(session).length);
  const device = someKey();
  await store.registerKey(session.sid, { generation: 1, nonce: first, issuedAt: storeMs(0) }, device);
  expect(await server.admin.strlen(key)).toBe(HEAD_BYTES + encodeBody(session).length + device.bytes.length + 41);
  await store.unbind(session.sid);
  expect(await server.admin.strlen(key)).toBe(HEAD_BYTES + encodeBody(session).length);
});

test("subjects whose sessions have all expired leave the index as others come", () =>
  expectUpkeep((tag) => server.admin.hlen(`${tag}u`)));

test("sessions that have expired leave the order of creation when they are looked for", () =>
  expectUpkeep(
    async (tag) => {
      const chunks = await server.admin.zrangeBuffer(`${tag}o`, "0", "-1");
      return Buffer.concat(chunks).length / ENTRY_BYTES;
    },
    async () => {
      while (!(await store.expire()).isDone);
    },
  ));
