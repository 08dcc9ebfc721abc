/** The index of a subject contains exactly its live sessions. An entry that is not removed would stay indefinitely. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import type { SessionStore } from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { TAGS, tagOfSession } from "../../../../src/service/store/redis/partitions.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import { type RedisServer, startRedis } from "../../../support/redis.ts";
import { movable, redisOptions } from "../../../support/store/backends.ts";
import {
  neighbour,
  newSession,
  nonce,
  outcomeOf,
  REUSE_INTERVAL as R,
  sidOf,
  subject,
} from "../../../support/store/sessions.ts";

let redis: RedisServer;
let store: SessionStore;
let now = Date.now();

async function advance(ms: number): Promise<void> {
  now += ms;
  await Promise.all(TAGS.map((tag) => redis.admin.set(`${tag}clock`, now)));
}

beforeAll(async () => {
  redis = await startRedis();
  await advance(0);
  store = await createRedisStore(
    redisOptions(
      redis.url,
      movable(() => now),
    ),
  );
});
afterAll(async () => {
  await store.close();
  await redis.stop();
});

/** Returns the ids of a subject's sessions in the index. */
async function indexed(user: string, sid: SessionId): Promise<string[]> {
  const entry = await redis.admin.hget(`${tagOfSession(sid)}u`, user);
  return entry?.match(/.{23}/g) ?? [];
}

async function login(user: string, cap = 100): Promise<{ sid: SessionId; first: string }> {
  const [session, first] = [newSession(user), nonce()];
  await store.create(session, first, { cap });
  return { sid: session.sid, first };
}

test.each<
  [how: string, end: (user: string, ended: { sid: SessionId; first: string }, other: SessionId) => Promise<unknown>]
>([
  ["ending a session", (_, ended) => store.end(ended.sid, "logout")],
  ["ending one's other session", (_, ended, other) => store.endOwned(other, ended.sid, "revoked_by_owner")],
  ["ending all others", (user, _, other) => store.endAll(user, "revoked_others", { except: other })],
  [
    "reuse",
    async (_, { sid, first }) => {
      const second = nonce();
      await store.rotate(sid, { generation: 1, nonce: first, issuedAt: storeMs(0) }, second);
      await advance(3 * R);
      await store.rotate(sid, { generation: 2, nonce: second, issuedAt: storeMs(0) }, nonce());
      await advance(3 * R);
      expect(outcomeOf(await store.rotate(sid, { generation: 1, nonce: first, issuedAt: storeMs(0) }, nonce()))).toBe(
        "reuse",
      );
    },
  ],
])("%s takes it out of the index, and leaves the other in", async (_, end) => {
  const user = subject();
  const ended = await login(user);
  const other = await login(user);
  expect(await indexed(user, other.sid)).toEqual([ended.sid, other.sid]);
  await end(user, ended, other.sid);
  expect(await indexed(user, other.sid)).toEqual([other.sid]);
});

test("the last session of a subject takes its entry with it, however it ends", async () => {
  for (const end of [
    (_: string, sid: SessionId) => store.end(sid, "logout"),
    (_: string, sid: SessionId) => store.endOwned(sid, sid, "revoked_by_owner"),
    (user: string) => store.endAll(user, "revoked_subject"),
  ]) {
    const user = subject();
    const { sid } = await login(user);
    await end(user, sid);
    expect(await redis.admin.hexists(`${tagOfSession(sid)}u`, user)).toBe(0);
  }
});

test("a session that makes room for a new one leaves the index", async () => {
  const user = subject();
  await login(user);
  const kept = await login(user, 1);
  expect(await indexed(user, kept.sid)).toEqual([kept.sid]);
});

test("that a session ends with its actor's is forgotten once it has ended", async () => {
  const actor = subject();
  const own = await login(actor);
  const used = newSession(subject(), { actor: { subject: actor, sessionId: own.sid, endsWithSession: true } });
  await store.create(used, nonce(), { cap: 100 });
  await store.attach(used.sid, own.sid, 60_000);
  const key = `${tagOfSession(own.sid)}A`;
  expect(await redis.admin.exists(key)).toBe(1);
  await store.end(own.sid, "logout");
  expect(await store.endAttached()).toMatchObject([{ sid: used.sid, actor }]);
  expect(await redis.admin.exists(key)).toBe(0);
});

test("what a partition knows of its sessions is kept as long as the session that lives longest", async () => {
  const user = subject();
  const [first, last] = [await login(user), await advance(10).then(() => login(user))];
  const tag = tagOfSession(first.sid);
  const expiryOf = (key: string) => redis.admin.pexpiretime(`${tag}${key}`);
  const longest = Math.max(await expiryOf(`s${first.sid}`), await expiryOf(`s${last.sid}`));
  // One session is created between the others, because the clock was set back, and one after them.
  for (const ms of [-5, 10]) {
    await advance(ms);
    const short = { idleTimeoutMs: 1_000, absoluteLifetimeMs: 1_000 };
    await store.create(newSession(neighbour(user), short), nonce(), { cap: 10 });
    for (const key of ["u", "o"]) expect(await expiryOf(key), `${key} ${ms}`).toBeGreaterThanOrEqual(longest);
  }
});

test("what ends with a partition's sessions is kept as long as that which lives longest", async () => {
  const { sid } = await login(subject());
  const expiryOf = () => redis.admin.pexpiretime(`${tagOfSession(sid)}A`);
  await store.attach(sidOf(subject()), sid, 3_600_000);
  const longest = await expiryOf();
  await store.attach(sidOf(subject()), sid, 1_000);
  expect(await expiryOf()).toBeGreaterThanOrEqual(longest);
});

test("the index of a subject with many sessions is kept as long as the session that lives longest", async () => {
  const user = subject();
  const { sid } = await login(user, 1_000);
  const short = { idleTimeoutMs: 1_000, absoluteLifetimeMs: 1_000 };
  for (let count = 0; count < 128; count++) await store.create(newSession(user, short), nonce(), { cap: 1_000 });
  const expiryOf = (key: string) => redis.admin.pexpiretime(`${tagOfSession(sid)}${key}`);
  expect(await expiryOf(`i${user}`)).toBeGreaterThanOrEqual(await expiryOf(`s${sid}`));
});
