/** Commands that Redis receives long after their callers got `StoreUnavailable` have no effect. */
import { afterEach, describe, expect, test } from "vitest";
import { type SessionStore, StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { loadScripts } from "../../../../src/service/store/redis/scripts.ts";
import { createRedisStore, type RedisStoreOptions } from "../../../../src/service/store/redis/store.ts";
import { startHoldingProxy } from "../../../support/holding-proxy.ts";
import { type RedisServer, startRedis } from "../../../support/redis.ts";
import { redisOptions } from "../../../support/store/backends.ts";
import { someKey } from "../../../support/store/device.ts";
import { MARKED, newSession, nonce, outcomeOf, sidOf, subject } from "../../../support/store/sessions.ts";
import { until } from "../../../support/until.ts";

/**
 * The reuse interval (R), in ms. It is short, because Redis stalls for longer than 2 R in these tests. Only the ratio of these times
 * matters.
 */
const R = 600;
const TIMEOUT = 150;

const cleanUp: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

async function open(url: string, more: Partial<RedisStoreOptions> = {}): Promise<SessionStore> {
  const store = await createRedisStore(redisOptions(url, { reuseIntervalMs: R, commandTimeoutMs: TIMEOUT, ...more }));
  cleanUp.push(() => store.close());
  await until(() => store.ping());
  // Runs every script once, so that Redis has it cached when a late command refers to it.
  const { sid } = await browser(store);
  await until(() => store.unbind(sid));
  await until(() => store.registerKey(sid, { generation: 1, nonce: nonce(), issuedAt: storeMs(0) }, someKey()));
  await until(() => store.endAll(subject(), "revoked_subject"));
  await until(() => store.endOwned(sid, sid, "revoked_by_owner"));
  await until(() => store.end(sid, "logout"));
  return store;
}

async function server(): Promise<RedisServer> {
  const redis = await startRedis();
  cleanUp.push(() => redis.stop());
  return redis;
}

/**
 * Returns a new session with two tokens: the current one, which its browser has, and the replaced one, which another tab may still send.
 */
async function browser(store: SessionStore) {
  const first = nonce();
  const session = newSession(subject());
  await until(() => store.create(session, first, { cap: 10 }));
  const old = { generation: 1, nonce: first, issuedAt: storeMs(0) };
  const result = await until(() => store.rotate(session.sid, old, nonce()));
  if (!result.ok) throw new Error(result.reason);
  return { sid: session.sid, subject: session.subject, old, jar: result.child };
}

const passed = (since: number, ms: number) => until(async () => expect(performance.now() - since).toBeGreaterThan(ms));
const many = <T>(make: () => Promise<T>) => Promise.all(Array.from({ length: 20 }, make));

/** Sends refreshes with the replaced tokens of other tabs while Redis is stalled. Their callers get an error before the stall ends. */
async function refreshLate(
  store: SessionStore,
  stall: () => void,
  resume: () => void | Promise<void>,
): Promise<string[]> {
  const browsers = await many(() => browser(store));
  const begun = performance.now();
  stall();
  await Promise.all(
    browsers.map(({ sid, old }) => expect(store.rotate(sid, old, nonce())).rejects.toThrow(StoreUnavailable)),
  );
  await passed(begun, 2.6 * R);
  await resume();
  await until(() => store.ping());
  return Promise.all(
    browsers.map(async ({ sid, jar }) => outcomeOf(await until(() => store.rotate(sid, jar, nonce())))),
  );
}

describe("no browser is logged out by a request that its other tab gave up", () => {
  test("when Redis was stalled for 2.6 R", async () => {
    const redis = await server();
    const outcomes = await refreshLate(
      await open(redis.url),
      () => redis.pause(),
      () => redis.resume(),
    );
    expect(outcomes).toEqual(outcomes.map(() => "rotate"));
  });

  test("when the network held it back for 2.6 R", async () => {
    const redis = await server();
    const proxy = await startHoldingProxy(redis.port);
    cleanUp.push(() => proxy.stop());
    const outcomes = await refreshLate(await open(`redis://127.0.0.1:${proxy.port}`), proxy.hold, proxy.release);
    expect(outcomes).toEqual(outcomes.map(() => "rotate"));
  });

  test("when it was to be sent again as a text, because Redis had forgotten the script", async () => {
    const redis = await server();
    const proxy = await startHoldingProxy(redis.port);
    cleanUp.push(() => proxy.stop());
    const store = await open(`redis://127.0.0.1:${proxy.port}`);
    const outcomes = await refreshLate(store, proxy.hold, async () => {
      await redis.admin.script("FLUSH");
      proxy.release();
    });
    expect(outcomes).toEqual(outcomes.map(() => "rotate"));
  });
});

test("a registration and an unbinding that come late change nothing", async () => {
  const redis = await server();
  const proxy = await startHoldingProxy(redis.port);
  cleanUp.push(() => proxy.stop());
  const [slow, other] = [await open(`redis://127.0.0.1:${proxy.port}`), await open(redis.url)];
  const [first, second] = [await browser(other), await browser(other)];
  const key = someKey();
  await until(() => other.registerKey(second.sid, second.jar, key));
  const begun = performance.now();
  proxy.hold();
  await expect(slow.registerKey(first.sid, first.jar, someKey())).rejects.toThrow(StoreUnavailable);
  await expect(slow.unbind(second.sid)).rejects.toThrow(StoreUnavailable);
  await passed(begun, 3 * TIMEOUT);
  proxy.release();
  await until(() => slow.ping());
  expect(await until(() => other.find(first.sid))).not.toMatchObject({ session: { device: expect.anything() } });
  expect(await until(() => other.find(second.sid))).toMatchObject({ ok: true, session: { device: { key } } });
});

describe("an ending that comes late", () => {
  test.each<[string, (store: SessionStore, of: Awaited<ReturnType<typeof browser>>) => Promise<unknown>]>([
    ["of a subject's sessions", (store, of) => store.endAll(of.subject, "revoked_subject")],
    ["of a session", (store, { sid }) => store.end(sid, "logout")],
    ["of another session of the subject", (store, { sid }) => store.endOwned(sid, sid, "revoked_by_owner")],
  ])("%s ends nothing, not even a login made meanwhile", async (_, end) => {
    const redis = await server();
    const proxy = await startHoldingProxy(redis.port);
    cleanUp.push(() => proxy.stop());
    const [slow, other] = [await open(`redis://127.0.0.1:${proxy.port}`), await open(redis.url)];
    const before = await browser(slow);
    proxy.hold();
    const begun = performance.now();
    await expect(end(slow, before)).rejects.toThrow(StoreUnavailable);
    const login = newSession(before.subject);
    await until(() => other.create(login, nonce(), { cap: 10 }));
    await passed(begun, 2 * TIMEOUT);
    proxy.release();
    await until(() => slow.ping());
    for (const sid of [before.sid, login.sid]) expect((await until(() => other.find(sid))).ok).toBe(true);
  });
});

test("a login that comes late makes no session", async () => {
  const redis = await server();
  const proxy = await startHoldingProxy(redis.port);
  cleanUp.push(() => proxy.stop());
  const store = await open(`redis://127.0.0.1:${proxy.port}`);
  const session = newSession(subject());
  proxy.hold();
  const begun = performance.now();
  await expect(store.create(session, nonce(), { cap: 10 })).rejects.toThrow(StoreUnavailable);
  await passed(begun, 2 * TIMEOUT);
  proxy.release();
  await until(() => store.ping());
  expect(await until(() => store.find(session.sid))).toEqual({ ok: false, reason: "unknown" });
});

test("what was held up in this process is late as well", async () => {
  const redis = await server();
  const store = await open(redis.url);
  const { sid } = await browser(store);
  const ending = store.end(sid, "logout");
  ending.catch(() => {});
  // Blocking this turn of the event loop delays the sending of the command.
  for (const resume = performance.now() + 3 * TIMEOUT; performance.now() < resume; );
  await expect(ending).rejects.toThrow(StoreUnavailable);
  expect((await until(() => store.find(sid))).ok).toBe(true);
});

test("what was held up in this process is sent again while its request is not too old", async () => {
  const redis = await server();
  const store = await open(redis.url, { reuseIntervalMs: 100 * TIMEOUT });
  const { sid } = await browser(store);
  const ending = store.end(sid, "logout");
  // Blocking this turn of the event loop delays the sending of the command.
  for (const resume = performance.now() + 3 * TIMEOUT; performance.now() < resume; );
  expect(await ending).toMatchObject({ ok: true, wasLive: true });
});

describe("commands in time are sent once more when Redis's clock is not the one that was known", () => {
  const clock = "local function clock() return tonumber(redis.call('GET', '{clock}') or 4e12) end\n";

  test.each([
    ["set forward", 3_600_000],
    ["set back", -3_600_000],
    ["unknown", 0],
  ])("%s", async (_, step) => {
    const redis = await server();
    const store = await open(redis.url, { scripts: loadScripts(clock), steady: () => 5 });
    const sid = sidOf(subject());
    await redis.admin.set("{clock}", 4e12 + step);
    expect(await store.end(sid, "logout")).toEqual(MARKED);
    expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
  });
});
