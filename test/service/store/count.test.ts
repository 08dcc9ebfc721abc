/** The number of live sessions that a store reports. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SessionId } from "../../../src/service/session/model.ts";
import type { SessionStore } from "../../../src/service/session/ports.ts";
import { type Backend, embeddedBackend, redisBackend, redisClusterBackend } from "../../support/store/backends.ts";
import { expectCreated, IDLE, newSession, nonce, SECOND, subject } from "../../support/store/sessions.ts";

const BACKENDS = [
  ["embedded", embeddedBackend],
  ["Redis", redisBackend],
  ["a Redis cluster", redisClusterBackend],
] as const;
/** The number of sessions to create, which is more than the store reads at once in one partition of a Redis. */
const MANY = 400;

describe.each(BACKENDS)("over %s", (_, open) => {
  let backend: Backend;
  let store: SessionStore;
  beforeAll(async () => {
    backend = await open();
    store = await backend.open();
  });
  afterAll(() => backend.stop());

  const create = async (user: string, idleTimeoutMs = IDLE) =>
    expectCreated(await store.create(newSession(user, { idleTimeoutMs }), nonce(), { cap: 10_000 })).session.sid;

  test("only live sessions count: none that ended, by itself, with others or by expiry", async () => {
    expect(await store.count()).toBe(0);
    const sids: SessionId[] = [];
    // The sessions get different times of creation: 20 are created in each millisecond.
    for (let at = 0; at < 15; at++) {
      sids.push(...(await Promise.all(Array.from({ length: 20 }, () => create(subject())))));
      await backend.advance(1);
    }
    expect(await store.count()).toBe(300);
    for (const sid of sids.slice(0, 7)) await store.end(sid, "logout");
    expect(await store.count()).toBe(293);
    await Promise.all(Array.from({ length: 20 }, () => create(subject(), 10 * SECOND)));
    expect(await store.count()).toBe(313);
    await backend.advance(10 * SECOND);
    expect(await store.count()).toBe(293);
    await store.revokeAll(undefined);
    expect(await store.count()).toBe(0);
    await create(subject());
    expect(await store.count()).toBe(1);
  });

  test("so many sessions of one partition that not all are looked at are estimated", async () => {
    const before = await store.count();
    const user = subject();
    for (let at = 0; at < MANY; at++) {
      await create(user);
      await backend.advance(1);
    }
    const counted = (await store.count()) - before;
    expect(counted).toBeGreaterThan(MANY * 0.5);
    expect(counted).toBeLessThan(MANY * 1.5);
  });
});
