/** How many sessions a store reports to be live. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SessionStore } from "../../src/session/ports.ts";
import { type Backend, embeddedBackend, redisBackend, redisClusterBackend } from "./backends.ts";
import { IDLE, newSession, nonce, SECOND, subject } from "./sessions.ts";

const BACKENDS = [
  ["embedded", embeddedBackend, 400],
  ["Redis", redisBackend, 2000],
  ["a Redis cluster", redisClusterBackend, 2000],
] as const;

describe.each(BACKENDS)("over %s", (_, open, many) => {
  let backend: Backend;
  let store: SessionStore;
  beforeAll(async () => {
    backend = await open();
    store = await backend.open();
  });
  afterAll(() => backend.stop());

  const create = (user: string, idleTimeout = IDLE) =>
    store.create(newSession(user, { idleTimeout }), nonce(), 10_000).then(({ session }) => session.sid);

  test("only live sessions count: none that ended, by itself, with others or by expiry", async () => {
    expect(await store.count()).toBe(0);
    const sids = await Promise.all(Array.from({ length: 300 }, () => create(subject())));
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
    for (let at = 0; at < many / 100; at++) await Promise.all(Array.from({ length: 100 }, () => create(user)));
    const counted = (await store.count()) - before;
    expect(counted).toBeGreaterThan(many * 0.5);
    expect(counted).toBeLessThan(many * 1.5);
  });
});
