/** Tests that every store has to pass for signals: the log of ended sessions, its readers, and the subscriptions. */
import { hash } from "node:crypto";
import { afterEach, describe, expect, test } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import {
  MAX_SUBSCRIPTIONS,
  type Signal,
  type SignalEvent,
  type SubscriptionDefinition,
  signalId,
} from "../../../../src/service/signals/model.ts";
import type { Cursor, Lease } from "../../../../src/service/signals/ports.ts";
import type { Context } from "../../../support/store/context.ts";
import { neighbour, nonce, REUSE_INTERVAL, SECOND, sidOf, subject } from "../../../support/store/sessions.ts";

const WEBHOOK: SubscriptionDefinition = {
  kind: "webhook",
  endpoint: "https://receiver.example.test/",
  sealedSecret: "sealed",
  signingAlg: "RS256",
  filter: {},
  audience: [],
};
const LEASE_MS = 15 * SECOND;
const NONE = { delivered: 0, deadLetters: 0 };
const DAY = 86_400 * SECOND;
const NO_ERRORS = { state: "active", failures: 0, delivered: 0, deadLetters: 0 };

let names = 0;
const newId = () => `sub${++names}`;
const newHolder = () => `holder${++names}`;

/** Returns functions that many tests of this file use. */
function toolsOf({ store, login }: Context) {
  const { log, subscriptions } = store.signals;
  const partitionOf = (sid: SessionId) => log.partitionOf({ sid });
  return {
    log,
    subscriptions,
    login,
    partitionOf,
    async subscribe(definition = WEBHOOK) {
      const id = newId();
      expect(await subscriptions.create(id, definition, wallMs(5_000))).toBe(true);
      return id;
    },
    async leaseOf(sid: SessionId, holder: string): Promise<Lease | undefined> {
      return (await log.lease([partitionOf(sid)], holder, LEASE_MS))[0];
    },
    async cursorOf(id: string, sid: SessionId): Promise<Cursor> {
      const cursor = (await log.cursors(partitionOf(sid))).get(id);
      if (cursor === undefined) throw new Error("no cursor");
      return cursor;
    },
    /** Returns all signals of a partition after a cursor, which it reads in several calls. */
    async readAll(sid: SessionId, after: Cursor, limit = 100) {
      const found: { readonly signal: Signal; readonly cursor: Cursor }[] = [];
      for (;;) {
        const read = await log.read(partitionOf(sid), found.at(-1)?.cursor ?? after, limit);
        if (!read.ok) throw new Error(read.reason);
        found.push(...read.signals);
        if (!read.more) return found;
      }
    },
  };
}

export function signalsContract(context: () => Context): void {
  const tools = () => toolsOf(context());

  afterEach(async () => {
    const { subscriptions } = tools();
    for (const { id } of await subscriptions.list()) await subscriptions.delete(id);
  });

  logContract(context);
  readersContract(context);

  describe("subscriptions", () => {
    test("a subscription is kept as it was defined", async () => {
      const { subscribe, subscriptions } = tools();
      const filter = { subject: "alice", reasons: ["logout", "expired"] } as const;
      const definition = { kind: "ssf_poll", filter, audience: ["https://a.test", "https://b.test"] } as const;
      const id = await subscribe(definition);
      expect(await subscriptions.get(id)).toEqual({ id, ...definition, createdAt: 5_000, ...NO_ERRORS });
      expect(await subscriptions.list()).toHaveLength(1);
      expect(await subscriptions.known()).toMatchObject([{ id, ...definition, state: "active" }]);
      await subscriptions.repair();
      expect(await subscriptions.define(id, WEBHOOK, WEBHOOK)).toBe(false);
      expect(await subscriptions.define(id, WEBHOOK, definition)).toBe(true);
      expect(await subscriptions.get(id)).toEqual({ id, ...WEBHOOK, createdAt: 5_000, ...NO_ERRORS });
    });

    test("it is created once, and again only as the same one", async () => {
      const { subscribe, subscriptions } = tools();
      const id = await subscribe();
      expect(await subscriptions.create(id, WEBHOOK, wallMs(6_000))).toBe(true);
      expect(await subscriptions.create(id, { ...WEBHOOK, audience: ["a"] }, wallMs(6_000))).toBe(false);
      expect(await subscriptions.list()).toMatchObject([{ createdAt: 5_000, audience: [] }]);
    });

    test(`it is one of at most ${MAX_SUBSCRIPTIONS}`, async () => {
      const { subscribe, subscriptions } = tools();
      const ids: string[] = [];
      for (let count = 0; count < MAX_SUBSCRIPTIONS; count++) ids.push(await subscribe());
      expect(await subscriptions.create("one-more", WEBHOOK, wallMs(5_000))).toBe(false);
      const [first = ""] = ids;
      expect(await subscriptions.create(first, WEBHOOK, wallMs(5_000))).toBe(true);
      expect((await subscriptions.list()).map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
    });

    test("failures are counted until an attempt succeeds or it is resumed", async () => {
      const { subscribe, subscriptions } = tools();
      const id = await subscribe();
      const failure = { error: "timeout", at: wallMs(7_000) } as const;
      for (let count = 0; count < 3; count++) await subscriptions.recordAttempt(id, failure);
      const last = { lastError: "timeout", lastErrorAt: 7_000 };
      expect(await subscriptions.get(id)).toMatchObject({ failures: 3, ...last, state: "active" });
      await subscriptions.setState(id, { state: "paused", because: "failing" });
      expect(await subscriptions.get(id)).toMatchObject({ failures: 3, state: "paused", because: "failing" });
      const operator = { state: "paused", because: "operator" } as const;
      expect(await subscriptions.setState(id, { state: "active" }, operator)).toBe(false);
      expect(await subscriptions.setState(id, { state: "active" }, { state: "active" })).toBe(false);
      expect(await subscriptions.get(id)).toMatchObject({ state: "paused", because: "failing" });
      expect(await subscriptions.setState(id, operator, { state: "paused", because: "failing" })).toBe(true);
      await subscriptions.setState(id, { state: "active" });
      const resumed = await subscriptions.get(id);
      expect(resumed).toMatchObject({ failures: 0, ...last, state: "active" });
      expect(resumed).not.toHaveProperty("because");
      await subscriptions.recordAttempt(id, failure);
      await subscriptions.recordAttempt(id, undefined);
      expect(await subscriptions.get(id)).toMatchObject({ failures: 0 });
    });

    test("one that is deleted is not found, and is deleted once", async () => {
      const { subscribe, subscriptions } = tools();
      const id = await subscribe();
      expect(await subscriptions.delete(id)).toBe(true);
      expect(await subscriptions.delete(id)).toBe(false);
      expect(await subscriptions.get(id)).toBeUndefined();
      expect(await subscriptions.define(id, WEBHOOK, WEBHOOK)).toBe(false);
      expect(await subscriptions.setState(id, { state: "active" })).toBe(false);
      expect(await subscriptions.recordAttempt(id, undefined)).toBe(false);
      expect(await subscriptions.list()).toEqual([]);
    });
  });
}

function logContract(context: () => Context): void {
  const tools = () => toolsOf(context());

  describe("the signal log", () => {
    test("an ending has one signal, with what is known of the session", async () => {
      const { subscribe, login, cursorOf, readAll } = tools();
      const { backend, store } = context();
      const id = await subscribe();
      const user = `${subject()} ünïcode\nline`;
      const { sid } = await login(user, { clientId: "ä".repeat(200) });
      const after = await cursorOf(id, sid);
      await store.end(sid, "logout");
      await store.end(sid, "logout");
      const ending = { sessionId: sid, reason: "logout", happenedAt: backend.now() } as const;
      const signal = { id: signalId(ending), ...ending, subject: user, clientId: "ä".repeat(200) };
      expect(await readAll(sid, after)).toEqual([{ signal, cursor: expect.any(String) }]);
      expect(signal.id).toBe(hash("sha256", `${sid} logout ${backend.now()}`, "base64url").slice(0, 22));
    });

    test("without a subscription there is no log", async () => {
      const { subscribe, login, cursorOf, readAll, log } = tools();
      const { sid } = await login(subject());
      await context().store.end(sid, "logout");
      expect(await log.lease([0], newHolder(), LEASE_MS)).toEqual([]);
      const id = await subscribe();
      expect(await readAll(sid, await cursorOf(id, sid))).toEqual([]);
    });

    test("creations are signalled while a subscription asks for them, in the order of the session", async () => {
      const { subscribe, login, cursorOf, readAll, subscriptions } = tools();
      const { backend, store } = context();
      const user = subject();
      const client = { userAgent: "Firefox", ipAddress: "192.0.2.1", displayName: "" };
      const wants = (...events: SignalEvent[]) => ({ ...WEBHOOK, filter: { events } });
      const ended = await subscribe();
      const { sid: plain } = await login(user, { client });
      const after = await cursorOf(ended, plain);
      expect(await readAll(plain, after)).toEqual([]);

      const both = await subscribe(wants("session.created", "session.new_device"));
      const fresh = await subscribe(wants("session.new_device", "session.ended"));
      const { sid: known } = await login(user, { client });
      const { sid: other } = await login(user, { client: { ...client, userAgent: "Chrome" }, clientId: "app" });
      await store.end(other, "logout");
      const at = { happenedAt: backend.now(), subject: user };
      const read = async () => (await readAll(plain, after)).map(({ signal }) => signal);
      const events = [
        { ...at, sessionId: known, reason: "created", clientId: "web" },
        { ...at, sessionId: other, reason: "created", clientId: "app" },
        { ...at, sessionId: other, reason: "new_device", clientId: "app" },
        { ...at, sessionId: other, reason: "logout", clientId: "app" },
      ] as const;
      expect(await read()).toEqual(events.map((event) => ({ id: signalId(event), ...event })));

      await subscriptions.delete(both);
      await subscriptions.repair();
      await login(user, { client });
      const { sid: last } = await login(user, { client: { ...client, userAgent: "Safari" } });
      expect((await read()).slice(events.length)).toMatchObject([{ sessionId: last, reason: "new_device" }]);
      await subscriptions.delete(fresh);
      await login(user, { client: { ...client, userAgent: "Edge" } });
      expect(await read()).toHaveLength(events.length + 1);
    });

    test("updates are signalled while a subscription asks for them, each that counts a version once", async () => {
      const { subscribe, login, cursorOf, readAll, subscriptions } = tools();
      const { backend, store } = context();
      const user = subject();
      const id = await subscribe();
      const { sid } = await login(user);
      const after = await cursorOf(id, sid);
      const update = (role: string, refresh = false) =>
        store.update(sid, { claims: JSON.stringify({ role }), outdatesTokens: refresh });
      await update("unnoticed");
      const definition = { ...WEBHOOK, filter: { events: ["session.updated", "session.ended"] } } as const;
      expect(await subscriptions.define(id, definition, WEBHOOK)).toBe(true);
      await update("a");
      await update("a");
      await update("a", true);
      await update("b", true);
      // A step-up changes neither claims nor audiences.
      await store.elevate(sid, { time: wallMs(1_000), methods: ["otp"], contextClass: "" }, true);
      await store.end(sid, "logout");
      const at = { happenedAt: backend.now(), subject: user, clientId: "web", sessionId: sid };
      const events = [
        { ...at, reason: "updated", version: 2 },
        { ...at, reason: "updated", version: 3 },
        { ...at, reason: "logout" },
      ] as const;
      const signals = (await readAll(sid, after)).map(({ signal }) => signal);
      expect(signals).toEqual(events.map((event) => ({ id: signalId(event), ...event })));
      expect(new Set(signals.map((signal) => signal.id)).size).toBe(3);
    });

    test("endings of each kind are signalled, in the order in which they happened", async () => {
      const { subscribe, login, cursorOf, readAll } = tools();
      const { backend, store } = context();
      const id = await subscribe();
      const user = subject();
      const sids = [];
      for (let count = 0; count < 5; count++) sids.push((await login(user)).sid);
      const [one, two, three, four, five] = sids as [SessionId, SessionId, SessionId, SessionId, SessionId];
      const short = await login(user, { idleTimeoutMs: SECOND });
      const after = await cursorOf(id, one);
      await store.end(one, "logout");
      await store.endOwned(three, two, "revoked_by_owner");
      await backend.advance(2 * SECOND);
      while (!(await store.expire()).isDone);
      await store.endAll(user, "revoked_others", { except: five });
      const lost = sidOf(user);
      await store.end(lost, "revoked_by_admin");
      const all = await readAll(one, after, 2);
      const read = all.filter(({ signal }) => signal.subject === user || signal.sessionId === lost);
      expect(read.map(({ signal }) => [signal.sessionId, signal.reason])).toEqual([
        [one, "logout"],
        [two, "revoked_by_owner"],
        [short.sid, "expired"],
        [three, "revoked_others"],
        [four, "revoked_others"],
        [lost, "revoked_by_admin"],
      ]);
      expect(read.slice(0, -1).every(({ signal }) => signal.subject === user && signal.clientId === "web")).toBe(true);
      expect(read.at(-1)?.signal).not.toHaveProperty("subject");
    });

    test("the end of all has one signal for each session that was live, however many there are", async () => {
      const { subscribe, login, cursorOf, readAll } = tools();
      const { backend, store } = context();
      const user = subject();
      const before = await login(user);
      await backend.advance(SECOND);
      await store.revokeAll(undefined);
      const id = await subscribe();
      const sids = [];
      for (let count = 0; count < 90; count++) sids.push((await login(user)).sid);
      const [gone = before.sid] = sids;
      const after = await cursorOf(id, gone);
      await store.end(gone, "logout");
      await store.revokeAll(undefined);
      await backend.advance(SECOND);
      const later = (await login(user)).sid;
      const [first, ...rest] = await readAll(gone, after);
      expect(first?.signal).toMatchObject({ sessionId: gone, reason: "logout" });
      expect(rest.map(({ signal }) => signal.sessionId).toSorted()).toEqual(sids.slice(1).toSorted());
      expect(new Set(rest.map(({ signal }) => `${signal.reason} ${signal.subject}`))).toEqual(
        new Set([`revoked_all ${user}`]),
      );
      await store.revokeAll(undefined);
      const again = await readAll(gone, rest.at(-1)?.cursor ?? after);
      expect(again.map(({ signal }) => signal.sessionId)).toEqual([later]);
    });

    test("the end of all has one signal also for a session that expires while the signals are appended", async () => {
      const { subscribe, login, cursorOf, readAll, log, partitionOf } = tools();
      const { backend, store } = context();
      const user = subject();
      await backend.advance(SECOND);
      const id = await subscribe();
      const sids: SessionId[] = [];
      for (let count = 0; count < 90; count++) {
        sids.push((await login(user, { idleTimeoutMs: SECOND })).sid);
        if (count % 9 === 0) await backend.advance(1);
      }
      const [first = sidOf(user)] = sids;
      const after = await cursorOf(id, first);
      await store.revokeAll(undefined);
      expect(await log.read(partitionOf(first), after, 10)).toMatchObject({ ok: true, more: true });
      await backend.advance(2 * SECOND);
      while (!(await store.expire()).isDone);
      const read = await readAll(first, after);
      expect(read.map(({ signal }) => signal.sessionId).toSorted()).toEqual(sids.toSorted());
    });

    test("the end of all of an earlier time, while the signals of another are appended, loses none of them", async () => {
      const { subscribe, login, cursorOf, readAll } = tools();
      const { backend, store } = context();
      const user = subject();
      await backend.advance(SECOND);
      const before = backend.now();
      await backend.advance(SECOND);
      const id = await subscribe();
      const sids: SessionId[] = [];
      for (let count = 0; count < 90; count++) sids.push((await login(user)).sid);
      const [first = sidOf(user)] = sids;
      const after = await cursorOf(id, first);
      await store.revokeAll(undefined);
      await backend.advance(SECOND);
      await store.revokeAll(before);
      const read = await readAll(first, after);
      expect(read.map(({ signal }) => signal.sessionId).toSorted()).toEqual(sids.toSorted());
    });

    test("a session that an end of all has ended is not signalled again when it expires while the next one is", async () => {
      const { subscribe, login, cursorOf, readAll } = tools();
      const { backend, store } = context();
      const user = subject();
      await backend.advance(SECOND);
      const id = await subscribe();
      const old = await login(user, { idleTimeoutMs: 2 * SECOND });
      const after = await cursorOf(id, old.sid);
      await store.revokeAll(undefined);
      const [first] = await readAll(old.sid, after);
      expect(first?.signal).toMatchObject({ sessionId: old.sid, reason: "revoked_all" });
      await backend.advance(SECOND);
      const sids: SessionId[] = [];
      for (let count = 0; count < 90; count++) sids.push((await login(user)).sid);
      await store.revokeAll(undefined);
      await backend.advance(SECOND);
      while (!(await store.expire()).isDone);
      const read = await readAll(old.sid, first?.cursor ?? after);
      expect(read.map(({ signal }) => signal.sessionId).toSorted()).toEqual(sids.toSorted());
    });

    test("a second end of all, while the signals of the first are appended, repeats none of them", async () => {
      const { subscribe, login, cursorOf, readAll, log, partitionOf } = tools();
      const { backend, store } = context();
      const user = subject();
      const id = await subscribe();
      const sids: SessionId[] = [];
      for (let count = 0; count < 90; count++) sids.push((await login(user)).sid);
      const [first = sidOf(user)] = sids;
      const after = await cursorOf(id, first);
      await store.revokeAll(undefined);
      expect(await log.read(partitionOf(first), after, 10)).toMatchObject({ ok: true, more: true });
      await backend.advance(SECOND);
      sids.push((await login(user)).sid);
      await store.revokeAll(undefined);
      const read = await readAll(first, after);
      expect(read.map(({ signal }) => signal.sessionId).toSorted()).toEqual(sids.toSorted());
    });

    test("the ends of partitions change with each signal and stay without", async () => {
      const { subscribe, login, cursorOf, readAll, log, partitionOf } = tools();
      const id = await subscribe();
      const { sid } = await login(subject());
      const end = async () => (await log.ends())[partitionOf(sid)];
      expect(await end()).toBe(await cursorOf(id, sid));
      await context().store.end(sid, "logout");
      const [read] = await readAll(sid, await cursorOf(id, sid));
      expect(await end()).toBe(read?.cursor);
      expect(await end()).not.toBe(await cursorOf(id, sid));
    });

    test("what is older than the retention is gone, and a reader behind it learns how much it missed", async () => {
      const { subscribe, login, cursorOf, readAll, log, partitionOf } = tools();
      const { backend, store } = context();
      const id = await subscribe();
      const user = subject();
      const day = { idleTimeoutMs: 4 * DAY, absoluteLifetimeMs: 4 * DAY };
      const old = [await login(user, day), await login(user, day), await login(user, day)];
      const [one, two, three] = [await login(user, day), await login(user, day), await login(user, day)];
      const after = await cursorOf(id, one.sid);
      for (const { sid } of old) await store.end(sid, "logout");
      await backend.advance(DAY + SECOND);
      for (const { sid } of [one, two, three]) await store.end(sid, "logout");
      const behind = await log.read(partitionOf(one.sid), after, 10);
      expect(behind).toMatchObject({ ok: false, reason: "behind", lost: 3 });
      if (behind.ok || behind.reason !== "behind") return;
      const read = await readAll(one.sid, behind.oldest);
      expect(read.map(({ signal }) => signal.sessionId)).toEqual([one.sid, two.sid, three.sid]);
    });

    test("a reader that missed one signal learns of it", async () => {
      const { subscribe, login, cursorOf, log, partitionOf } = tools();
      const { backend, store } = context();
      const id = await subscribe();
      const user = subject();
      const [one, two] = [
        await login(user),
        await login(user, { idleTimeoutMs: 4 * DAY, absoluteLifetimeMs: 4 * DAY }),
      ];
      const after = await cursorOf(id, one.sid);
      await store.end(one.sid, "logout");
      await backend.advance(DAY + SECOND);
      await store.end(two.sid, "logout");
      expect(await log.read(partitionOf(one.sid), after, 10)).toMatchObject({ ok: false, reason: "behind", lost: 1 });
    });

    test("a signal is kept for the whole of the retention", async () => {
      const { subscribe, login, cursorOf, readAll } = tools();
      const { backend, store } = context();
      const id = await subscribe();
      const user = subject();
      const long = { idleTimeoutMs: 4 * DAY, absoluteLifetimeMs: 4 * DAY };
      const [one, two, three] = [await login(user, long), await login(user, long), await login(user, long)];
      const after = await cursorOf(id, one.sid);
      await store.end(one.sid, "logout");
      await backend.advance(DAY);
      await store.end(two.sid, "logout");
      expect((await readAll(one.sid, after)).map(({ signal }) => signal.sessionId)).toEqual([one.sid, two.sid]);
      await backend.advance(1);
      await store.end(three.sid, "logout");
      await expect(readAll(one.sid, after)).rejects.toThrow("behind");
    });

    test("the last signal that all have read stays, so that a position in another log is recognised", async () => {
      const { subscribe, login, cursorOf, readAll, log, partitionOf, leaseOf } = tools();
      const { store } = context();
      const id = await subscribe();
      const user = subject();
      const { sid } = await login(user);
      const after = await cursorOf(id, sid);
      for (let count = 0; count < 40; count++) await store.end((await login(user)).sid, "logout");
      const { cursor } = (await readAll(sid, after))[35] ?? {};
      const lease = await leaseOf(sid, newHolder());
      if (lease === undefined || cursor === undefined) throw new Error("no lease");
      expect(await log.advance(lease, id, cursor, NONE)).toEqual({ ok: true });
      expect(await log.read(partitionOf(sid), cursor, 10)).toMatchObject({ ok: true });
      const other = `${cursor.split(" ")[0]} ${sidOf(user)}` as Cursor;
      expect(await log.read(partitionOf(sid), other, 10)).toEqual({ ok: false, reason: "rewound" });
    });

    test("a position that the store has lost is recognised", async () => {
      const { subscribe, login, cursorOf, log, partitionOf, leaseOf } = tools();
      const { store } = context();
      const id = await subscribe();
      const { sid } = await login(subject());
      await store.end(sid, "logout");
      const lease = await leaseOf(sid, newHolder());
      if (lease === undefined) throw new Error("no lease");
      const [number] = ((await log.ends())[partitionOf(sid)] ?? "").split(" ");
      const numbers = [1, 2, 1_000].map((more) => `${Number(number) + more} ${sid}`);
      for (const cursor of [`${number} ${sidOf(subject())}`, ...numbers] as Cursor[]) {
        const rewound = { ok: false, reason: "rewound" };
        expect(await log.read(partitionOf(sid), cursor, 10)).toEqual(rewound);
        expect(await log.advance(lease, id, cursor, NONE)).toEqual(rewound);
      }
      expect(await log.read(partitionOf(sid), await cursorOf(id, sid), 10)).toMatchObject({ ok: true });
    });
  });
}

function readersContract(context: () => Context): void {
  const tools = () => toolsOf(context());

  describe("readers of the signal log", () => {
    test("one instance holds a partition until it gives it back or its time has passed", async () => {
      const { subscribe, login, leaseOf, cursorOf, log } = tools();
      const id = await subscribe();
      const { sid } = await login(subject());
      const [one, two] = [newHolder(), newHolder()];
      const first = await leaseOf(sid, one);
      expect(first).toMatchObject({ holder: one });
      expect(await leaseOf(sid, two)).toBeUndefined();
      expect(await leaseOf(sid, one)).toEqual(first);
      await context().backend.advance(LEASE_MS);
      const second = await leaseOf(sid, two);
      expect(second?.fence).toBeGreaterThan(first?.fence ?? 0);
      expect(await leaseOf(sid, one)).toBeUndefined();
      if (second !== undefined) await log.release([second]);
      expect((await leaseOf(sid, one))?.fence).toBeGreaterThan(second?.fence ?? 0);
      // The instance that held the first lease now holds a newer one. Calls with its former lease are refused nevertheless.
      if (first === undefined) throw new Error("no lease");
      expect(await log.advance(first, id, await cursorOf(id, sid), NONE)).toEqual({ ok: false, reason: "lost" });
    });

    test("a lease is held to its last millisecond, as extended, and nobody else gives it back", async () => {
      const { subscribe, login, leaseOf, log } = tools();
      await subscribe();
      const { sid } = await login(subject());
      const [one, two] = [newHolder(), newHolder()];
      const first = await leaseOf(sid, one);
      if (first === undefined) throw new Error("no lease");
      await log.release([{ ...first, holder: two }]);
      expect(await leaseOf(sid, two)).toBeUndefined();
      await context().backend.advance(LEASE_MS - SECOND);
      expect(await leaseOf(sid, one)).toEqual(first);
      await context().backend.advance(LEASE_MS - SECOND);
      expect(await leaseOf(sid, two)).toBeUndefined();
      await context().backend.advance(SECOND);
      // The lease has expired, and still nobody else gives it back.
      await log.release([{ ...first, holder: two }]);
      expect(await leaseOf(sid, one)).toEqual(first);
      await context().backend.advance(LEASE_MS);
      expect(await leaseOf(sid, two)).toMatchObject({ holder: two, fence: first.fence + 1 });
    });

    test("a lease that is longer than any was taken before the clock was set back, and does not count", async () => {
      const { subscribe, login, leaseOf, log, partitionOf } = tools();
      await subscribe();
      const { sid } = await login(subject());
      const [one, two] = [newHolder(), newHolder()];
      const take = async (holder: string, ms: number) => (await log.lease([partitionOf(sid)], holder, ms))[0];
      const first = await take(one, 600 * SECOND);
      expect(await leaseOf(sid, two)).toBeUndefined();
      await take(one, 660 * SECOND);
      // Leases may be as long as the one that is asked for.
      expect(await take(two, 660 * SECOND)).toBeUndefined();
      expect((await leaseOf(sid, two))?.fence).toBeGreaterThan(first?.fence ?? Number.POSITIVE_INFINITY);
    });

    test("of instances that race for a partition, one has it", async () => {
      const { subscribe, login, partitionOf } = tools();
      await subscribe();
      const { sid } = await login(subject());
      const others = await Promise.all([context().backend.open(), context().backend.open()]);
      const stores = [context().store, ...others];
      const races = stores.map(({ signals }) => signals.log.lease([partitionOf(sid)], newHolder(), LEASE_MS));
      expect((await Promise.all(races)).flat()).toHaveLength(1);
    });

    test("the cursor moves forward, for the holder of the lease only, and counts", async () => {
      const { subscribe, subscriptions, login, cursorOf, readAll, leaseOf, log } = tools();
      const { backend, store } = context();
      const [id, other] = [await subscribe(), await subscribe()];
      const user = subject();
      const [one, two] = [await login(user), await login(neighbour(user))];
      for (const { sid } of [one, two]) await store.end(sid, "logout");
      const lease = await leaseOf(one.sid, newHolder());
      const [first, second] = await readAll(one.sid, await cursorOf(id, one.sid));
      if (lease === undefined || first === undefined || second === undefined) throw new Error("not there");
      expect(await log.advance(lease, id, second.cursor, { delivered: 1, deadLetters: 1 })).toEqual({ ok: true });
      expect(await log.advance(lease, id, first.cursor, NONE)).toEqual({ ok: true });
      expect(await cursorOf(id, one.sid)).toBe(second.cursor);
      expect(await readAll(one.sid, await cursorOf(other, one.sid))).toHaveLength(2);
      await backend.advance(LEASE_MS);
      await leaseOf(one.sid, newHolder());
      const lost = { ok: false, reason: "lost" };
      expect(await log.advance(lease, other, second.cursor, { delivered: 2, deadLetters: 0 })).toEqual(lost);
      expect(await subscriptions.get(id)).toMatchObject({ delivered: 1, deadLetters: 1 });
      expect(await subscriptions.get(other)).toMatchObject({ delivered: 0, deadLetters: 0 });
    });

    test("of what waits for a subscription, the ending that came first and the number are known", async () => {
      const { subscribe, login, cursorOf, readAll, leaseOf, log } = tools();
      const { backend, store } = context();
      const [quick, slow] = [await subscribe(), await subscribe()];
      const waitingFor = async (id: string) => (await log.oldestWaiting()).get(id);
      expect(await waitingFor(slow)).toBeUndefined();
      const user = subject();
      const [one, two] = [await login(user), await login(neighbour(user))];
      const [first, later] = [backend.now(), storeMs(backend.now() + SECOND)];
      await store.end(one.sid, "logout");
      await backend.advance(SECOND);
      await store.end(two.sid, "logout");
      await store.end((await login(subject())).sid, "logout"); // A session in another partition.
      expect(await waitingFor(quick)).toEqual({ sessionId: one.sid, happenedAt: first, count: 3 });
      const lease = await leaseOf(one.sid, newHolder());
      const [read] = await readAll(one.sid, await cursorOf(quick, one.sid));
      if (lease === undefined || read === undefined) throw new Error("not there");
      await log.advance(lease, quick, read.cursor, NONE);
      expect(await waitingFor(quick)).toMatchObject({ happenedAt: later, count: 2 });
      expect(await waitingFor(slow)).toEqual({ sessionId: one.sid, happenedAt: first, count: 3 });
    });

    test("a subscription that is restarted is past what has happened, and keeps its counts", async () => {
      const { subscribe, subscriptions, login, cursorOf, readAll, leaseOf, log } = tools();
      const { store } = context();
      const [id, other] = [await subscribe(), await subscribe()];
      const user = subject();
      const [one, two, three] = [await login(user), await login(neighbour(user)), await login(neighbour(user))];
      const before = await cursorOf(id, one.sid);
      for (const { sid } of [one, two]) await store.end(sid, "logout");
      const lease = await leaseOf(one.sid, newHolder());
      const [first] = await readAll(one.sid, before);
      if (lease === undefined || first === undefined) throw new Error("nothing to read");
      await log.advance(lease, id, first.cursor, { delivered: 1, deadLetters: 0 });
      expect(await subscriptions.restart(id)).toBe(true);
      expect(await subscriptions.restart("nobody")).toBe(false);
      await store.end(three.sid, "logout");
      const sids = async (cursor: Cursor) => (await readAll(one.sid, cursor)).map(({ signal }) => signal.sessionId);
      expect(await sids(await cursorOf(id, one.sid))).toEqual([three.sid]);
      expect(await sids(await cursorOf(other, one.sid))).toEqual([one.sid, two.sid, three.sid]);
      expect(await subscriptions.get(id)).toMatchObject({ delivered: 1 });
    });

    test("the cursor of a subscription that is polled moves from where it is, and counts once", async () => {
      const { subscribe, subscriptions, login, cursorOf, readAll, log, partitionOf } = tools();
      const { store } = context();
      const id = await subscribe();
      const user = subject();
      const [one, two] = [await login(user), await login(neighbour(user))];
      const place = partitionOf(one.sid);
      const before = await cursorOf(id, one.sid);
      expect(await log.positions(id)).toHaveLength(log.partitions);
      expect((await log.positions(id))[place]).toBe(before);
      expect(new Set(await log.positions("nobody"))).toEqual(new Set([""]));
      for (const { sid } of [one, two]) await store.end(sid, "logout");
      const [first, second] = await readAll(one.sid, before);
      if (first === undefined || second === undefined) throw new Error("nothing to read");
      const counts = { delivered: 1, deadLetters: 0 };
      const race = [1, 2, 3].map(() => log.pass(place, id, before, first.cursor, counts));
      expect((await Promise.all(race)).filter(Boolean)).toHaveLength(1);
      expect(await log.pass(place, id, before, second.cursor, counts)).toBe(false);
      expect(await log.pass(place, "nobody", first.cursor, second.cursor, counts)).toBe(false);
      expect(await log.pass(place, id, first.cursor, second.cursor, { delivered: 0, deadLetters: 1 })).toBe(true);
      expect((await log.positions(id))[place]).toBe(second.cursor);
      expect(await subscriptions.get(id)).toMatchObject({ delivered: 1, deadLetters: 1 });
    });

    test("a holder learns that a subscription was deleted", async () => {
      const { subscribe, subscriptions, login, cursorOf, leaseOf, log } = tools();
      const [id] = [await subscribe(), await subscribe()];
      const { sid } = await login(subject());
      const [lease, cursor] = [await leaseOf(sid, newHolder()), await cursorOf(id, sid)];
      await subscriptions.delete(id);
      if (lease === undefined) throw new Error("no lease");
      expect(await log.advance(lease, id, cursor, NONE)).toEqual({ ok: false, reason: "lost" });
    });

    test("a lease ends with the last subscription, and does not count for the next one", async () => {
      const { subscribe, subscriptions, login, cursorOf, leaseOf, log } = tools();
      const id = await subscribe();
      const { sid } = await login(subject());
      const lease = await leaseOf(sid, newHolder());
      if (lease === undefined) throw new Error("no lease");
      await subscriptions.delete(id);
      const next = await subscribe();
      expect(await log.advance(lease, next, await cursorOf(next, sid), NONE)).toEqual({ ok: false, reason: "lost" });
    });

    test("a refresh token that is used again is signalled", async () => {
      const { subscribe, login, cursorOf, readAll } = tools();
      const { backend, store, refresh } = context();
      const id = await subscribe();
      const { sid, first } = await login(subject());
      const after = await cursorOf(id, sid);
      const second = await refresh(sid, first);
      await backend.advance(4 * REUSE_INTERVAL);
      await refresh(sid, second.child);
      await backend.advance(4 * REUSE_INTERVAL);
      expect(await store.rotate(sid, first, nonce())).toMatchObject({ ok: false, reason: "reuse" });
      expect((await readAll(sid, after)).map(({ signal }) => signal.reason)).toEqual(["reuse"]);
    });
  });
}
