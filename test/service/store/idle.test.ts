/**
 * Random histories of sessions whose idle timeout is shorter than the reuse interval, as long, or longer. Every refresh, also one that gets
 * the same token again, begins the timeout anew; so the model, both stores and their search for expired sessions agree on who is live.
 */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SessionLimit } from "../../../src/service/session/admin/limit.ts";
import type { DevicePresentation } from "../../../src/service/session/devices/binding.ts";
import type { SessionId } from "../../../src/service/session/model.ts";
import type { SessionStore } from "../../../src/service/session/ports.ts";
import type { TokenFields } from "../../../src/service/session/rotation/rotation.ts";
import { later, storeMs } from "../../../src/service/session/time.ts";
import { type Backend, embeddedBackend, redisBackend } from "../../support/store/backends.ts";
import { someKey } from "../../support/store/device.ts";
import { newSession, nonce, outcomeOf, REUSE_INTERVAL, SECOND, subject } from "../../support/store/sessions.ts";
import { ModelStore, ORIGIN } from "./model.ts";

const R = REUSE_INTERVAL;
const IDLE_TIMEOUTS = [R / 4, R / 2, R - 1, R, R + 1, 2 * R, 3 * R];
const KEY = someKey();

const backends: Backend[] = [];
const stores: SessionStore[] = [];

beforeAll(async () => {
  backends.push(await embeddedBackend(), await redisBackend());
  for (const backend of backends) stores.push(await backend.open());
});
afterAll(() => Promise.all(backends.map((backend) => backend.stop())));

const pick = fc.nat(3);
const limit = fc.option(
  fc.record({
    scope: fc.constant("subject" as const),
    maxSessions: fc.integer({ min: 1, max: 3 }),
    whenExceeded: fc.constantFrom<SessionLimit["whenExceeded"]>("end_least_recently_used", "end_oldest", "refuse"),
  }),
);
const step = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({
      does: fc.constant("create" as const),
      idleTimeoutMs: fc.constantFrom(...IDLE_TIMEOUTS),
      /** The absolute lifetime, in idle timeouts. */
      life: fc.constantFrom(1, 2, 4, 100),
      withKey: fc.boolean(),
      cap: fc.integer({ min: 2, max: 4 }),
      limit,
    }),
  },
  {
    weight: 20,
    arbitrary: fc.record({
      does: fc.constant("rotate" as const),
      session: pick,
      recent: fc.nat(2),
      /** The age of the device cookie of a session with a device key. */
      age: fc.option(fc.constantFrom(0, 3 * R + 1), { freq: 5 }),
    }),
  },
  {
    weight: 12,
    arbitrary: fc.record({
      does: fc.constant("wait" as const),
      ms: fc.constantFrom(1, R / 4 - 1, R / 4, R / 2 - 1, R / 2, R - 1, R, R + 1),
    }),
  },
  { weight: 4, arbitrary: fc.record({ does: fc.constant("expire" as const) }) },
  { weight: 3, arbitrary: fc.record({ does: fc.constant("look" as const), session: pick }) },
  /** Goes to the last moment of a session, and to the next one. */
  { weight: 3, arbitrary: fc.record({ does: fc.constant("outlive" as const), session: pick }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("end" as const), session: pick }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** Ends every session that has expired. */
async function expireAll(store: SessionStore): Promise<SessionId[]> {
  const found: SessionId[] = [];
  for (let isDone = false; !isDone; ) {
    const pass = await store.expire();
    found.push(...pass.ended.map(({ sid }) => sid));
    ({ isDone } = pass);
  }
  return found.sort();
}

async function play(history: readonly Step[], seen: Set<string>): Promise<void> {
  const model = new ModelStore();
  const start = backends.map((backend) => backend.now());
  model.now = storeMs(Math.max(...start) + SECOND);
  await Promise.all(backends.map((backend, at) => backend.advance(model.now - (start[at] ?? 0))));
  const [user, clientId] = [subject("idle"), subject("client")];
  const sids: SessionId[] = [];
  const tokens = new Map<SessionId, TokenFields[]>();
  /** The sessions that may still expire: none of them has ended in another way, or was found expired. */
  const waiting = new Set<SessionId>();
  const bound = new Set<SessionId>();
  const at = (index: number) => sids.at(-1 - (index % Math.max(1, sids.length)));
  const wait = async (ms: number) => {
    model.now = later(model.now, ms);
    await Promise.all(backends.map((backend) => backend.advance(ms)));
  };
  const all = async <T>(expected: T, ask: (store: SessionStore) => Promise<T>) => {
    for (const store of stores) expect(await ask(store)).toEqual(expected);
  };
  const expire = async () => {
    const expired = [...waiting].filter((sid) => !model.find(sid).ok).sort();
    if (expired.length > 0) seen.add("expired");
    await all(expired, expireAll);
    for (const sid of expired) waiting.delete(sid);
  };
  const look = async () => {
    await all(model.list(user), async (store) => [...(await store.list(user, 10, undefined)).sessions]);
    await all(model.list(user), async (store) => [...(await store.listAll(100, undefined, { clientId })).sessions]);
    await all(model.list(user).length, (store) => store.count());
  };

  for (const step of history) {
    switch (step.does) {
      case "create": {
        await wait(1); // A session of the same millisecond may precede others in the order of creation, and be found expired only later.
        const { idleTimeoutMs, life, cap } = step;
        const session = newSession(user, { clientId, idleTimeoutMs, absoluteLifetimeMs: life * idleTimeoutMs });
        const [first, options] = [nonce(), { cap, limit: step.limit ?? undefined, origin: ORIGIN }];
        const created = model.create(session, first, options);
        await all(created, (store) => store.create(session, first, options));
        if (!created.ok) break;
        for (const { sid } of created.evicted) waiting.delete(sid);
        const token = { generation: 1, nonce: first, issuedAt: storeMs(0) };
        sids.push(session.sid);
        waiting.add(session.sid);
        tokens.set(session.sid, [token]);
        if (!step.withKey) break;
        bound.add(session.sid);
        await all(model.registerKey(session.sid, token, KEY), (store) => store.registerKey(session.sid, token, KEY));
        break;
      }
      case "rotate": {
        const sid = at(step.session);
        const known = tokens.get(sid ?? ("" as SessionId)) ?? [];
        const token = known.at(-1 - step.recent) ?? known[0];
        if (sid === undefined || token === undefined) break;
        const cookie = { thumbprint: KEY.thumbprint, issuedAtMs: storeMs(model.now - (step.age ?? 0)) };
        const device: DevicePresentation | undefined =
          bound.has(sid) && step.age !== null ? { lifeMs: 3 * R, cookie, skipped: false } : undefined;
        const fresh = nonce();
        const before = model.find(sid);
        const expected = model.rotate(sid, token, fresh, device);
        for (const store of stores) {
          const rotated = await store.rotate(sid, token, fresh, device);
          // A store may know for a while why a session has expired.
          if (expected.ok || !["idle", "expired"].includes(outcomeOf(rotated))) expect(rotated).toEqual(expected);
          else expect(outcomeOf(expected)).toBe("unknown");
        }
        seen.add(outcomeOf(expected));
        const isRepeat = expected.ok && before.ok && expected.outcome === "repeat";
        if (isRepeat && expected.session.idleExpiresAt > before.session.idleExpiresAt) seen.add("extended");
        if (!expected.ok && ["reuse", "two_holders"].includes(expected.reason)) waiting.delete(sid);
        if (expected.ok && expected.child.nonce === fresh) known.push(expected.child);
        break;
      }
      case "wait":
        await wait(step.ms);
        break;
      case "outlive": {
        const found = model.find(at(step.session) ?? ("" as SessionId));
        if (!found.ok) break;
        await wait(found.session.idleExpiresAt - model.now - 1);
        for (const ms of [0, 1]) {
          await wait(ms);
          await look();
          await expire();
        }
        break;
      }
      case "expire":
        await expire();
        break;
      case "look": {
        const sid = at(step.session);
        if (sid !== undefined) await all(model.find(sid), (store) => store.find(sid));
        await look();
        break;
      }
      case "end": {
        const sid = at(step.session);
        if (sid === undefined || !model.find(sid).ok) break;
        await all(model.end(sid, "logout"), (store) => store.end(sid, "logout", ORIGIN));
        waiting.delete(sid);
      }
    }
  }
  await look();
  await wait(Math.max(...IDLE_TIMEOUTS));
  await expire();
  expect([...waiting]).toEqual([]);
  await look();
}

test("the model and both stores agree on idle timeouts around the reuse interval", async () => {
  const seen = new Set<string>();
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 40, maxLength: 100, size: "max" }), (history) => play(history, seen)),
    { numRuns: 30, endOnFailure: true },
  );
  expect([...seen]).toEqual(expect.arrayContaining(["repeat", "rotate", "unknown", "expired", "extended"]));
});
