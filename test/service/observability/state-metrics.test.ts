/** The metrics about the state of an instance and its store. */
import { renameSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { createMetrics } from "../../../src/service/observability/metrics.ts";
import { exposeState, type StateSources } from "../../../src/service/observability/state-metrics.ts";
import { aService, STORES } from "../../support/every-protocol.ts";
import { request } from "../../support/raw-http.ts";
import { startService } from "../../support/service.ts";
import { admin, bearer, cookie, logIn, openAdmin, openPublic } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

/** Returns the value of a series in an exposition. */
function valueIn(body: string, series: string): number | undefined {
  const line = body.split("\n").find((one) => one.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

const listener = { connections: () => 0, maxConnections: 0 };
const openedWith = (count: () => Promise<number>) => ({ kind: "redis", store: { count } });

/** Exposes the metrics of a simulated state. Returns functions that read a metric and advance the clock. */
function aState(given: Partial<StateSources> = {}) {
  const metrics = createMetrics();
  let now = 1_000_000;
  let counts = 0;
  exposeState(metrics, {
    listeners: { public: listener, admin: listener },
    feed: { state: () => ({ watchers: 0, ageMs: undefined, entries: 0 }) },
    ring: { current: { states: [] } },
    opened: openedWith(async () => ++counts),
    isReady: async () => true,
    clock: () => now,
    ...given,
  });
  const read = async (series: string) => valueIn((await metrics.expose()).body, series);
  return { read, advance: (ms: number) => (now += ms), counts: () => counts };
}

test("sessions are counted, and not again within a minute", async () => {
  const state = aState();
  expect(await state.read("session_active_sessions")).toBe(1);
  state.advance(59_999);
  expect(await Promise.all([state.read("session_active_sessions"), state.read("session_active_sessions")])).toEqual([
    1, 1,
  ]);
  state.advance(1);
  expect(await Promise.all([state.read("session_active_sessions"), state.read("session_active_sessions")])).toEqual([
    2, 2,
  ]);
});

test("while the store does not respond there is no count, and it is tried again at once", async () => {
  let down = true;
  const state = aState({ opened: openedWith(async () => (down ? Promise.reject(new Error("down")) : 5)) });
  expect(await state.read("session_active_sessions")).toBeUndefined();
  down = false;
  expect(await state.read("session_active_sessions")).toBe(5);
});

test("a store that has stalled does not hold up the other metrics, and its count follows", async () => {
  const counted = Promise.withResolvers<number>();
  const state = aState({ opened: openedWith(() => counted.promise) });
  expect(await state.read("session_active_sessions")).toBeUndefined();
  counted.resolve(3);
  expect(await state.read("session_active_sessions")).toBe(3);
});

test("an instance that is not ready says so, also while its store does not respond", async () => {
  let check = Promise.resolve(true);
  const state = aState({ isReady: () => check });
  expect(await state.read("session_unready")).toBe(0);
  check = Promise.resolve(false);
  expect(await state.read("session_unready")).toBe(1);
  const stalled = Promise.withResolvers<boolean>();
  check = stalled.promise;
  expect(await state.read("session_unready")).toBe(1);
  stalled.resolve(true);
  await until(async () => expect(await state.read("session_unready")).toBe(0));
});

test("keys show their age by kind and state", async () => {
  const key = (kind: string, state: string, since: number) => ({ kind, state, since });
  const states = [
    key("signing", "signing", 990_000),
    key("signing", "retired", 400_000),
    key("signing", "retired", 300_000),
    key("mac", "published", 2_000_000),
  ];
  const state = aState({ ring: { current: { states } } });
  expect(await state.read('session_key_age_seconds{kind="signing",state="signing"}')).toBe(10);
  expect(await state.read('session_key_age_seconds{kind="signing",state="retired"}')).toBe(700);
  expect(await state.read('session_key_age_seconds{kind="mac",state="published"}')).toBe(0);
});

test("a feed that has never been read has no age", async () => {
  expect(await aState().read("session_feed_age_seconds")).toBeUndefined();
});

test("without the file of its key ring an instance is not ready", async () => {
  const service = await startService();
  const read = async () => valueIn((await request(service.adminUrl, { path: "/metrics" })).body, "session_unready");
  expect(await read()).toBe(0);
  const file = join(service.dataDir, "keys.json");
  renameSync(file, `${file}.away`);
  await until(async () => expect(await read()).toBe(1));
  renameSync(`${file}.away`, file);
  await until(async () => expect(await read()).toBe(0));
  await service.stop();
});

describe.each(STORES)("over the %s store", (store) => {
  const service = aService({}, store);
  const read = async (series: string) =>
    valueIn((await request(service.adminUrl, { path: "/metrics" })).body, series) ?? Number.NaN;

  test("the commands of the store are timed by operation", async () => {
    const commands = (operation: string) =>
      read(`session_store_duration_seconds_count{operation="${operation}",outcome="replied"}`);
    const user = await logIn(service);
    const created = await commands("create");
    const caller = openPublic(service);
    await caller.call(SessionService.method.refresh, {}, cookie(user.refreshToken));
    caller.close();
    expect(await commands("create")).toBe(created);
    expect(await commands("rotate")).toBe(1);
    const labels = 'operation="rotate",outcome="replied"';
    expect(await read(`session_store_duration_seconds_sum{${labels}}`)).toBeGreaterThan(0);
    expect(await read(`session_store_duration_seconds_bucket{le="+Inf",${labels}}`)).toBe(1);
    expect(await read(`session_store_info{kind="${store}"}`)).toBe(1);
  });

  test("connections are counted by listener", async () => {
    const before = await read('session_open_connections{listener="public"}');
    const socket = connect(Number(new URL(service.publicUrl).port), "127.0.0.1");
    await until(async () => expect(await read('session_open_connections{listener="public"}')).toBe(before + 1));
    socket.destroy();
    await until(async () => expect(await read('session_open_connections{listener="public"}')).toBe(before));
    expect(await read('session_max_connections{listener="public"}')).toBeGreaterThan(100);
    expect(await read('session_open_connections{listener="admin"}')).toBeGreaterThan(0);
  });

  test("the feed shows its watchers, its entries and its age", async () => {
    const caller = openAdmin(service);
    const leaving = new AbortController();
    const watch = caller.stream(admin.watchRevocations, {}, bearer(service.adminToken), leaving.signal);
    const batches = watch[Symbol.asyncIterator]();
    await batches.next();
    expect(await read("session_feed_watchers")).toBe(1);
    const entries = await read("session_feed_entries");
    const { sid: sessionId } = await logIn(service);
    await caller.call(admin.revokeSession, { sessionId }, bearer(service.adminToken));
    await until(async () => expect(await read("session_feed_entries")).toBe(entries + 1));
    expect(await read("session_feed_age_seconds")).toBeLessThan(30);
    leaving.abort();
    await batches.next().catch(() => {});
    await until(async () => expect(await read("session_feed_watchers")).toBe(0));
    caller.close();
  });

  test("sessions and keys are there", async () => {
    await logIn(service);
    expect(await read("session_active_sessions")).toBeGreaterThanOrEqual(0);
    expect(await read('session_key_age_seconds{kind="signing",state="signing"}')).toBeGreaterThanOrEqual(0);
    expect(await read('session_key_age_seconds{kind="mac",state="signing"}')).toBeGreaterThanOrEqual(0);
  });
});
