/** What the file of the embedded store keeps, and what it does not keep any longer than it must. */
import { DatabaseSync } from "node:sqlite";
import { beforeEach, expect, test } from "vitest";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import type { SubscriptionDefinition } from "../../../../src/service/signals/model.ts";
import type { Cursor, Lease, StoreWithSignals } from "../../../../src/service/signals/ports.ts";
import { createSessionRows } from "../../../../src/service/store/embedded/rows.ts";
import { SCHEMA_VERSIONS } from "../../../../src/service/store/embedded/schema-versions.ts";
import { createSignalSteps } from "../../../../src/service/store/embedded/signal-steps.ts";
import { prepareStatements } from "../../../../src/service/store/embedded/statements.ts";
import { openNewFile, START } from "../../../support/store/embedded-file.ts";
import { loginWith, recordOf } from "../../../support/store/event-records.ts";
import { MARKER_LIFE, SECOND, subject } from "../../../support/store/sessions.ts";

const DAY = 86_400 * SECOND;
const EVENTS = ["session.ended", "session.created", "session.updated"] as const;
const ALL_EVENTS: SubscriptionDefinition = {
  kind: "webhook",
  endpoint: "https://receiver.example.test/",
  audience: [],
  filter: { events: EVENTS },
};

let path: string;
let now: number;
let store: StoreWithSignals;

beforeEach(() => {
  now = START;
  ({ path, store } = openNewFile(() => now));
});

function rows(sql: string) {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return db.prepare(sql).all();
  } finally {
    db.close();
  }
}
const signals = () => rows("SELECT reason FROM signals ORDER BY number").map(({ reason }) => reason);

test("a logout of everyone is one entry of the log, which expires as others do", async () => {
  await loginWith(store, subject());
  await store.revokeAll(storeMs(77));
  expect(rows("SELECT sid, revoked_at, expires_at, reason FROM log")).toEqual([
    { sid: "*", revoked_at: 76, expires_at: now + MARKER_LIFE, reason: "revoked_all" },
  ]);
});

test("events that have expired are removed as others come", async () => {
  const user = subject();
  const record = async (time: number, retentionMs: number) => {
    const { sid } = await loginWith(store, user);
    await store.recordEvents([recordOf({ time: storeMs(time), type: "elevated", sid, subject: user })], retentionMs);
  };
  await record(1, SECOND);
  await record(2, 2 * SECOND);
  now += SECOND;
  await record(3, SECOND);
  expect(rows("SELECT expires_at FROM events ORDER BY seq")).toEqual([
    { expires_at: now + SECOND },
    { expires_at: now + SECOND },
  ]);
});

test("no signals are kept while nobody subscribes, nor after the last subscription was deleted", async () => {
  const user = subject();
  const act = async () => {
    const { sid } = await loginWith(store, user);
    await store.update(sid, { claims: '{"a":1}', outdatesTokens: false });
    await store.end(sid, "logout");
    await loginWith(store, user);
    await store.revokeAll(undefined);
    now += 1;
  };
  await act();
  expect(signals()).toEqual([]);
  expect(rows("SELECT created_until FROM signal_state")).toEqual([{ created_until: 0 }]);
  const { subscriptions, log } = store.signals;
  for (const id of ["one", "two"]) await subscriptions.create(id, ALL_EVENTS, wallMs(now));
  await act();
  expect(signals()).toEqual(["created", "updated:1", "logout", "created"]);
  const [lease] = await log.lease([0], "holder", SECOND);
  expect(rows("SELECT holder FROM signal_state")).toEqual([{ holder: lease?.holder }]);
  expect(await subscriptions.delete("one")).toBe(true);
  expect(signals()).toHaveLength(4);
  expect(rows("SELECT holder FROM signal_state")).toEqual([{ holder: lease?.holder }]);
  expect(await subscriptions.delete("two")).toBe(true);
  expect(signals()).toEqual([]);
  expect(rows("SELECT holder, held_until, created_until FROM signal_state")).toEqual([
    { holder: "", held_until: 0, created_until: 0 },
  ]);
});

test.each(["created", "updated", "ended"])(
  "signals older than the retention are removed by one that says %s",
  async (by) => {
    const user = subject();
    const { sid } = await loginWith(store, user, { idleTimeoutMs: 4 * DAY, absoluteLifetimeMs: 4 * DAY });
    await store.signals.subscriptions.create("one", ALL_EVENTS, wallMs(now));
    for (let count = 0; count < 3; count++) await store.end((await loginWith(store, user)).sid, "logout");
    expect(signals()).toHaveLength(6);
    now += DAY + 1;
    if (by === "created") await loginWith(store, user);
    if (by === "updated") await store.update(sid, { claims: '{"a":1}', outdatesTokens: false });
    if (by === "ended") await store.end(sid, "logout");
    expect(signals()).toHaveLength(3);
  },
);

test("a logout of everyone with few sessions is signalled whole by the first reader", async () => {
  const { subscriptions, log } = store.signals;
  await subscriptions.create("one", ALL_EVENTS, wallMs(now));
  const [end] = await log.ends();
  for (let count = 0; count < 3; count++) await loginWith(store, subject());
  await store.revokeAll(undefined);
  expect((await log.ends())[0]).toMatch(/\+$/);
  expect(await log.read(0, end as never, 10)).toMatchObject({ ok: true, signals: { length: 6 }, more: false });
  expect(rows("SELECT created_until, from_sid FROM signal_state")).toEqual([{ created_until: 0, from_sid: "" }]);
  expect((await log.ends())[0]).not.toMatch(/\+$/);
});

test("a step that another process has taken in the meantime does nothing", () => {
  const db = new DatabaseSync(":memory:");
  for (const step of SCHEMA_VERSIONS) db.exec(step);
  const sql = prepareStatements(db);
  const steps = createSignalSteps(sql, createSessionRows(sql), DAY);
  expect(steps.pending()).toBeUndefined();
  steps.continueEndOfAll();
  steps.appendEndOfAll("nobody" as never);
  expect(db.prepare("SELECT number FROM signals").all()).toEqual([]);
  db.close();
});

test("a second logout of everyone that ends nothing more does not change when the sessions have ended", async () => {
  const { subscriptions, log } = store.signals;
  await subscriptions.create("one", { ...ALL_EVENTS, filter: {} }, wallMs(now));
  const [end] = await log.ends();
  for (let count = 0; count < 3; count++) await loginWith(store, subject());
  const until = await store.revokeAll(undefined);
  const endedAt = now;
  now += SECOND;
  await store.revokeAll(storeMs(until + 1));
  const read = await log.read(0, end as never, 10);
  expect(read.ok && read.signals.map(({ signal }) => signal.happenedAt)).toEqual([endedAt, endedAt, endedAt]);
});

test("the log tells ends, marks of stale tokens and logouts of everyone apart", async () => {
  const [{ sid: a }, { sid: b }] = [await loginWith(store, subject()), await loginWith(store, subject())];
  const { cursor: start } = await store.revocations(undefined);
  await store.update(a, { claims: '{"a":1}', outdatesTokens: true });
  await store.end(b, "logout");
  const until = await store.revokeAll(undefined);
  const at = { expiresAt: now + MARKER_LIFE };
  const batch = await store.revocations(start);
  expect(batch).toEqual({
    revocations: [{ sid: b, reason: "logout", revokedAt: now, ...at }],
    staleMarks: [{ sid: a, minVersion: 1, markedAt: now, ...at }],
    revokedUntil: until,
    cursor: start.replace(/\d+$/, "3"),
    now,
  });
  expect(await store.revocations(batch.cursor)).toEqual({ ...batch, revocations: [], staleMarks: [] });
});

test("a session that expired before that of its actor ended does not wait for its end any more", async () => {
  const actor = subject();
  const { sid: own } = await loginWith(store, actor);
  const whose = { subject: actor, sessionId: own, endsWithSession: true } as const;
  const { sid } = await loginWith(store, subject(), { actor: whose, idleTimeoutMs: SECOND });
  await store.attach(sid, own, SECOND);
  await store.end(own, "logout");
  expect(rows("SELECT actor FROM sessions")).toEqual([{ actor: "!" }]);
  now += SECOND;
  expect(await store.endAttached()).toEqual([]);
  expect(rows("SELECT actor FROM sessions")).toEqual([{ actor: "" }]);
});

test("signals that all subscriptions have read are removed, except the last of them", async () => {
  const { subscriptions, log } = store.signals;
  await subscriptions.create("one", { ...ALL_EVENTS, filter: {} }, wallMs(now));
  const [start] = await log.ends();
  for (let count = 0; count < 4; count++) await store.end((await loginWith(store, subject())).sid, "logout");
  const read = await log.read(0, start as never, 3);
  if (!read.ok) throw new Error(read.reason);
  const [lease] = await log.lease([0], "holder", SECOND);
  const third = read.signals[2]?.cursor as Cursor;
  expect(await log.advance(lease as Lease, "one", third, { delivered: 3, deadLetters: 0 })).toEqual({ ok: true });
  expect(rows("SELECT number FROM signals")).toEqual([{ number: 3 }, { number: 4 }]);
});

test("a reader behind signals that were removed learns how many it has missed", async () => {
  const { subscriptions, log } = store.signals;
  await subscriptions.create("one", { ...ALL_EVENTS, filter: {} }, wallMs(now));
  const [start] = await log.ends();
  for (let count = 0; count < 3; count++) await store.end((await loginWith(store, subject())).sid, "logout");
  const read = await log.read(0, start as never, 3);
  if (!read.ok) throw new Error(read.reason);
  await subscriptions.delete("one");
  await subscriptions.create("two", { ...ALL_EVENTS, filter: {} }, wallMs(now));
  const [first, second, third] = read.signals.map(({ cursor }) => cursor) as [Cursor, Cursor, Cursor];
  const end = `${third.split(" ")[0]} -`;
  expect(await log.read(0, first, 9)).toEqual({ ok: false, reason: "behind", oldest: end, lost: 2 });
  expect(await log.read(0, second, 9)).toEqual({ ok: false, reason: "behind", oldest: end, lost: 1 });
  expect(await log.read(0, third, 9)).toEqual({ ok: true, signals: [], more: false });
});

test("the check whether the store is ready writes to the file", async () => {
  const db = new DatabaseSync(path);
  const version = () => db.prepare("PRAGMA data_version").get()?.data_version;
  const before = version();
  await store.ping();
  expect(version()).not.toBe(before);
  db.close();
});

test("a subscription of a new file is defined, counted, paused and moved as the first one", async () => {
  const { subscriptions, log } = store.signals;
  const plain = { ...ALL_EVENTS, filter: {} };
  expect(await subscriptions.create("one", ALL_EVENTS, wallMs(now))).toBe(true);
  expect(await subscriptions.create("one", ALL_EVENTS, wallMs(now))).toBe(true);
  expect(await subscriptions.create("one", plain, wallMs(now))).toBe(false);
  expect(await subscriptions.define("one", plain, ALL_EVENTS)).toBe(true);
  expect(await subscriptions.recordAttempt("one", { error: "timeout", at: wallMs(now) })).toBe(true);
  expect(await subscriptions.setState("one", { state: "paused", because: "failing" })).toBe(true);
  expect(await subscriptions.get("one")).toMatchObject({ failures: 1, because: "failing", lastErrorAt: now });
  expect(await subscriptions.setState("one", { state: "active" }, { state: "paused", because: "failing" })).toBe(true);
  const { sid } = await loginWith(store, subject());
  const place = log.partitionOf({ sid });
  expect([place, log.partitions]).toEqual([0, 1]);
  const [start = ""] = await log.positions("one");
  await store.end(sid, "logout");
  expect(await log.pass(place, "one", start as Cursor, start as Cursor, { delivered: 1, deadLetters: 0 })).toBe(true);
  expect(await subscriptions.restart("one")).toBe(true);
  expect(await log.positions("one")).toEqual(await log.ends());
  expect(await log.positions("two")).toEqual([""]);
  expect(await subscriptions.get("one")).toMatchObject({ state: "active", failures: 0, delivered: 1 });
});

test("a logout of everyone is due to be recorded, and actors' sessions end with it", async () => {
  const actor = subject();
  const { sid: own } = await loginWith(store, actor);
  now += 1;
  const whose = { subject: actor, sessionId: own, endsWithSession: true } as const;
  const { sid } = await loginWith(store, subject(), { actor: whose });
  expect(await store.attach(sid, own, SECOND)).toEqual({ ok: true });
  const revokedUntil = await store.revokeAll(storeMs(now), { address: "192.0.2.7" });
  expect((await store.dueRecords()).flatMap(({ records }) => records)).toMatchObject([
    { event: { type: "all_ended", revokedUntil, address: "192.0.2.7" } },
  ]);
  expect(await store.endAttached()).toMatchObject([{ sid, actor }]);
});
