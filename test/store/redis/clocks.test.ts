/** Several instances with wrong clocks on one Redis. */
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SessionStore } from "../../../src/session/ports.ts";
import { storeMs } from "../../../src/session/time.ts";
import { loadScripts } from "../../../src/store/redis/scripts.ts";
import { createRedisStore } from "../../../src/store/redis/store.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { redisOptions } from "../../support/store/backends.ts";
import { untilReached } from "../../support/store/reached.ts";
import { newSession, nonce, REUSE_INTERVAL as R, subject } from "../../support/store/sessions.ts";

const CLOCK = "local function clock() return tonumber(redis.call('GET', '{clock}')) end\n";

let server: RedisServer;
let admin: Redis;
let wall = Date.now();
const stores: SessionStore[] = [];

beforeAll(async () => {
  server = await startRedis();
  admin = new Redis(server.port);
  await admin.set("{clock}", wall);
});
afterAll(async () => {
  await Promise.all(stores.map((store) => store.close()));
  admin.disconnect();
  await server.stop();
});

async function open(steady: () => number): Promise<SessionStore> {
  const store = await createRedisStore(
    redisOptions(server.url, { scripts: loadScripts(CLOCK), steady, commandTimeoutMs: 1_000 }),
  );
  stores.push(store);
  await untilReached(store);
  return store;
}

async function pass(ms: number): Promise<void> {
  wall += ms;
  await admin.set("{clock}", wall);
}

test("an instance whose machine was stopped does not turn back the time of the others", async () => {
  let frozen = 0;
  const sleeper = await open(() => frozen);
  const awake = await open(() => wall);
  const session = newSession(subject());
  const first = { generation: 1, nonce: nonce(), issuedAt: storeMs(0) };
  await sleeper.create(session, first.nonce, 10);
  await pass(10 * R);
  const rotated = await awake.rotate(session.sid, first, nonce());
  if (!rotated.ok) throw new Error(rotated.reason);
  await pass(R + 1);
  const next = await awake.rotate(session.sid, rotated.child, nonce());
  expect(next).toMatchObject({ outcome: "rotate", now: wall });
  await awake.ping();
  // The machine of the instance `sleeper` was suspended during the steps above, and now continues.
  frozen += 1;
  expect(await sleeper.rotate(session.sid, rotated.child, nonce())).toMatchObject({ outcome: "repeat", now: wall });
  const { child } = next as typeof rotated;
  await pass(R + 1);
  frozen += R + 1;
  expect(await sleeper.rotate(session.sid, child, nonce())).toMatchObject({ outcome: "rotate", now: wall });
});

test("the clock that stamps tokens is Redis's, whatever that of the instance shows", async () => {
  const store = await open(() => wall - 400_000);
  const session = newSession(subject());
  await store.create(session, nonce(), 10);
  expect(store.now(session.sid)).toBe(wall);
});
