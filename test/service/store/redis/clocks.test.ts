/** The clock of a node of Redis as an instance estimates it, and several instances with wrong clocks on one Redis. */
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SessionStore } from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { NodeClock } from "../../../../src/service/store/redis/partitions.ts";
import { loadScripts } from "../../../../src/service/store/redis/scripts.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import { type RedisServer, startRedis } from "../../../support/redis.ts";
import { redisOptions } from "../../../support/store/backends.ts";
import { untilReached } from "../../../support/store/reached.ts";
import { newSession, nonce, REUSE_INTERVAL as R, subject } from "../../../support/store/sessions.ts";

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
  await sleeper.create(session, first.nonce, { cap: 10 });
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
  await store.create(session, nonce(), { cap: 10 });
  expect(store.now(session.sid)).toBe(wall);
});

const TIMEOUT = 500;

/**
 * One reading of a node's clock, in ms: the time since the last reading, the delays of the request (`there`) and of the reply (`back`), and
 * a step by which the clock was set before the reading.
 */
const sample = fc.record({
  wait: fc.nat(5_000),
  there: fc.nat(2_000),
  back: fc.nat(2_000),
  step: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, fc.integer({ min: -100_000, max: 100_000 })),
});

describe("the clock of a node", () => {
  test("while nothing is known no command may act", () => {
    const { from, until } = new NodeClock(TIMEOUT).window(1_000);
    expect(from).toBeGreaterThan(until);
  });

  test("a command's time is over by the node's clock when it is by ours, or earlier; a step masks no more than the way of the last question", () => {
    fc.assert(
      fc.property(fc.array(sample, { minLength: 1, maxLength: 20 }), fc.nat(1e12), (samples, start) => {
        const clock = new NodeClock(TIMEOUT);
        let now = 0;
        let ahead = start;
        let masked = false;
        for (const { wait, there, back, step } of samples) {
          now += wait;
          ahead += step;
          clock.observe(now + there + ahead, now, now + there + back);
          now += there + back;
          masked ||= step !== 0;
          if (clock.step !== 0) {
            // The step of the clock was noticed. No command may take effect until all instances have agreed on the new time.
            expect(masked).toBe(true);
            expect(clock.window(now).from).toBeGreaterThan(clock.window(now).until);
            clock.settle(0);
            masked = false;
          }
          const { from, until } = clock.window(now);
          const truth = now + ahead;
          // If a step of the clock looks like a delayed reply, it is not noticed. Commands may then take effect for longer, but by no more
          // than such a delay.
          expect(until).toBeLessThanOrEqual(truth + TIMEOUT + (masked ? there : 0));
          expect(until - from).toBe(2 * TIMEOUT);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  test.each([-TIMEOUT - 1, TIMEOUT + 1, -80_000, 80_000])(
    "a step by %d ms is noticed by the next quick reply",
    (step) => {
      const clock = new NodeClock(TIMEOUT);
      clock.observe(10_000, 0, 0);
      clock.observe(10_100 + step, 100, 100);
      expect(clock.step).toBe(step);
      expect(clock.window(100).from).toBeGreaterThan(clock.window(100).until);
    },
  );

  test("one quick reply is worth more than slow ones after it", () => {
    const clock = new NodeClock(TIMEOUT);
    clock.observe(10_001, 0, 2);
    clock.observe(10_101, 100, 900);
    expect(clock.window(1_000)).toEqual({ from: 10_499, until: 11_499, shift: 0 });
  });
});
