/** Compares the rotate script with the pure function, one decision at a time, for states and tokens at and around every limit. */
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { decide, type PresentedToken, type RotationState } from "../../../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { encodeBody, nonceWords } from "../../../../src/service/store/redis/encoding/record.ts";
import { loadScripts } from "../../../../src/service/store/redis/scripts.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import { type RedisServer, startRedis } from "../../../support/redis.ts";
import { redisOptions } from "../../../support/store/backends.ts";
import { newSession, nonce, outcomeOf, REUSE_INTERVAL } from "../../../support/store/sessions.ts";

const R = REUSE_INTERVAL;
/** The time of all decisions, in ms. */
const NOW = 4_000_000_000_000;
const DAY = 86_400_000;
const NEVER = 2 ** 48 - 1;

let server: RedisServer;
let redis: Redis;

beforeAll(async () => {
  server = await startRedis();
  redis = new Redis(server.port);
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
});

const ages = [R, 2 * R, 3 * R, 4 * R].flatMap((age) => [age - 1, age, age + 1]);
/** Some times are in the future, as if the clock had been set back. */
const time = fc
  .constantFrom(0, NOW - 1, NOW, NEVER, ...ages.map((age) => NOW - age), ...ages.map((age) => NOW + age))
  .map(storeMs);
const nonces = fc.constantFrom("AAAAAAAAAAA", "AAAAAAAAAAE", "__________8", "AAAAABAAAAA", "q83vEjRWeJA");
const generation = fc.constantFrom(1, 2, 3, 4, 5, 4_294_967_290);
const state: fc.Arbitrary<RotationState> = fc.record({
  generation: fc.constantFrom(1, 2, 3, 4, 4_294_967_290),
  nonce: nonces,
  siblingsSince: time,
  childNonce: nonces,
  childMintedAt: time,
  childServedAt: time,
});
const token: fc.Arbitrary<PresentedToken> = fc.record({ generation, nonce: nonces, issuedAt: time });

/** Builds a record with the layout of lua/lib/partition.lua. */
function record(state: RotationState, session: ReturnType<typeof newSession>): Buffer {
  const head = Buffer.alloc(55);
  head.writeUInt8(1, 0);
  head.writeUInt32BE(state.generation, 1);
  for (const [at, word] of [...nonceWords(state.nonce), ...nonceWords(state.childNonce)].entries()) {
    head.writeUInt32BE(word, 5 + 4 * at);
  }
  const times = [state.siblingsSince, state.childServedAt, state.childMintedAt, NOW - DAY];
  for (const [at, time] of times.entries()) head.writeUIntBE(time, 21 + 6 * at, 6);
  head.writeUIntBE(session.idleTimeoutMs, 45, 5);
  head.writeUIntBE(session.absoluteLifetimeMs, 50, 5);
  return Buffer.concat([head, encodeBody(session)]);
}

test("the script decides as the function does", async () => {
  const scripts = loadScripts(`local function clock() return ${NOW} end\n`);
  const store = await createRedisStore(
    redisOptions(server.url, { scripts, steady: () => 0, commandTimeoutMs: 60_000 }),
  );
  await fc.assert(
    fc.asyncProperty(state, token, async (state, token) => {
      const session = newSession("subject", { idleTimeoutMs: 30 * DAY, absoluteLifetimeMs: 90 * DAY });
      const key = `{${Buffer.from(session.sid, "base64url").toString("hex", 0, 1)}}s${session.sid}`;
      await redis.set(key, record(state, session));
      const fresh = nonce();
      const expected = decide(state, token, fresh, storeMs(NOW), R);
      const result = await store.rotate(session.sid, token, fresh);
      expect(outcomeOf(result)).toBe(expected.outcome);
      const found = await store.find(session.sid);
      if (expected.outcome === "reuse") {
        expect(found).toEqual({ ok: false, reason: "revoked" });
      } else {
        expect(found).toMatchObject({ ok: true, rotation: expected.next });
        const { generation, childNonce, childMintedAt } = expected.next;
        expect(result).toMatchObject({
          child: { generation: generation + 1, nonce: childNonce, issuedAt: childMintedAt },
          now: NOW,
        });
      }
    }),
    { numRuns: 3_000 },
  );
  await store.close();
});

test.each([
  ["one ms before its absolute expiry it is served", -1, "recover"],
  ["at its absolute expiry it has expired", 0, "expired"],
])("%s", async (_, ms, outcome) => {
  const scripts = loadScripts(`local function clock() return ${NOW} end\n`);
  const store = await createRedisStore(
    redisOptions(server.url, { scripts, steady: () => 0, commandTimeoutMs: 60_000 }),
  );
  const session = newSession("subject", { idleTimeoutMs: 30 * DAY, absoluteLifetimeMs: DAY - ms });
  const key = `{${Buffer.from(session.sid, "base64url").toString("hex", 0, 1)}}s${session.sid}`;
  const state = {
    generation: 1,
    nonce: nonce(),
    siblingsSince: storeMs(0),
    childNonce: nonce(),
    childMintedAt: storeMs(NOW - DAY),
    childServedAt: storeMs(0),
  };
  await redis.set(key, record(state, session));
  const result = await store.rotate(session.sid, { generation: 1, nonce: state.nonce, issuedAt: storeMs(0) }, nonce());
  expect(outcomeOf(result)).toBe(outcome);
  await store.close();
});
