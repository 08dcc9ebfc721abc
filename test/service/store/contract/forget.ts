/** Tests that every store has to pass: what it keeps of a subject is removed. */
import { afterEach, beforeAll, expect, test } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import type { SubscriptionDefinition } from "../../../../src/service/signals/model.ts";
import type { Context } from "../../../support/store/context.ts";
import { dueOf, loginWith, RETENTION, recordOf } from "../../../support/store/event-records.ts";
import {
  ALREADY_ENDED,
  IDLE,
  neighbour,
  newSession,
  nonce,
  outcomeOf,
  SECOND,
  subject,
} from "../../../support/store/sessions.ts";

const WEBHOOK: SubscriptionDefinition = { kind: "webhook", endpoint: "https://a.test/", filter: {}, audience: [] };
const NOTHING = { events: 0, signals: 0 };
const NONE = { delivered: 0, deadLetters: 0 };
const ORIGIN = { address: "192.0.2.7" };
const REASON = "revoked_subject";
const MANY = 300;

/** The names of subscriptions. */
let names = 0;

export function forgetContract(context: () => Context): void {
  afterEach(async () => {
    const { subscriptions } = context().store.signals;
    for (const { id } of await subscriptions.known()) await subscriptions.delete(id);
  });

  /** Records everything that is due: `dueRecords` returns a bounded number, and other tests leave many. */
  beforeAll(async () => {
    const { store } = context();
    for (let left = 1; left > 0; ) {
      const records = (await store.dueRecords()).flatMap((part) => part.records);
      await store.recordEvents(
        records.map(({ key, event: { sid } }) => ({
          event: { time: wallMs(1), type: "created", ...(sid && { sid }) },
          dueKey: key,
        })),
        0,
      );
      left = records.length;
    }
  });

  async function subscribe(): Promise<string> {
    const id = `forget${++names}`;
    await context().store.signals.subscriptions.create(id, WEBHOOK, wallMs(1));
    return id;
  }
  const signalsOf = async (user: string) => (await context().store.signals.log.ofSubject(user, 0, 1_000)).signals;
  const eventsOf = async (user: string) =>
    (await context().store.events({ subject: user })).filter(({ type }) => type !== "all_ended");
  const recordCreation = (sid: SessionId, user: string) =>
    context().store.recordEvents([recordOf({ time: storeMs(1), type: "created", sid, subject: user })], RETENTION);

  test("events and due records of its sessions are removed, and those of another subject stay", async () => {
    const { store } = context();
    const user = subject();
    const other = neighbour(user);
    const [{ sid }, { sid: due }] = [
      await loginWith(store, user, {}, ORIGIN),
      await loginWith(store, user, {}, ORIGIN),
    ];
    const { sid: theirs } = await loginWith(store, other, {}, ORIGIN);
    for (const [one, whose] of [
      [sid, user],
      [theirs, other],
    ] as const)
      await recordCreation(one, whose);
    await store.end(sid, "logout", ORIGIN);
    await store.endAll(user, REASON);
    expect(await dueOf(store, sid, due)).toHaveLength(2);
    expect(await store.forget(user)).toEqual({ events: 1, signals: 0 });
    expect(await eventsOf(user)).toEqual([]);
    expect(await store.eventSessions(user)).toEqual([]);
    expect(await dueOf(store, sid, due)).toEqual([]);
    expect(await eventsOf(other)).toHaveLength(1);
    expect(await store.end(sid, "logout")).toEqual(ALREADY_ENDED);
    expect(await store.forget(user)).toEqual(NOTHING);
  });

  test("nothing names a subject, whatever it has done before", async () => {
    const { backend, store, login, refresh } = context();
    const user = `${subject("forgotten")}.`;
    await subscribe();
    const by = { origin: ORIGIN };
    const short = { idleTimeoutMs: IDLE / 4 };
    for (let count = 0; count < MANY / 2; count++) await loginWith(store, user, count % 2 ? {} : short, ORIGIN);
    await backend.advance(IDLE / 2);
    // A cap of the sessions that live makes room, first of those that have expired.
    const session = newSession(user, { upstream: { issuer: "https://login.example", subject: user } });
    await store.create(session, nonce(), { cap: MANY / 4, origin: ORIGIN });
    await store.endAll(user, REASON, by);
    for (let count = 0; count < 5; count++) {
      const { sid, first } = await login(user);
      await recordCreation(sid, user);
      await refresh(sid, first);
      await store.update(sid, { claims: `{"name":"${user}"}`, outdatesTokens: true });
      await store.end(sid, "logout", ORIGIN);
    }
    await loginWith(store, user, short, ORIGIN);
    await backend.advance(IDLE / 2);
    await store.create(newSession(neighbour(user)), nonce(), { cap: 1, origin: ORIGIN });
    await store.endAll(user, REASON, by);
    await store.forget(user);
    expect(await backend.placesOf(user)).toEqual([]);
  });

  test("events that arrive later are not kept", async () => {
    const { store } = context();
    const user = subject();
    const { sid } = await loginWith(store, user, {}, ORIGIN);
    await recordCreation(sid, user);
    await store.endAll(user, REASON, { origin: ORIGIN });
    await store.forget(user);
    await store.recordEvents(
      [
        recordOf({ time: storeMs(2), type: "elevated", sid, subject: user }),
        recordOf({ time: storeMs(3), type: "ended", sid, subject: user, reason: REASON }),
      ],
      RETENTION,
    );
    expect(await eventsOf(user)).toEqual([]);
    expect(await store.eventSessions(user)).toEqual([]);
  });

  test("the events of all its sessions are removed, not only those of the last ones", async () => {
    const { store } = context();
    const user = subject();
    for (let count = 0; count < MANY; count++) {
      const { sid } = await loginWith(store, user, {}, ORIGIN);
      await recordCreation(sid, user);
    }
    expect(await store.eventSessions(user)).toHaveLength(MANY);
    await store.endAll(user, REASON);
    expect(await store.forget(user)).toEqual({ events: MANY, signals: 0 });
    expect(await store.eventSessions(user)).toEqual([]);
  });

  test("a live session and its events stay", async () => {
    const { store, refresh } = context();
    const user = subject();
    const [old, live] = [await loginWith(store, user, {}, ORIGIN), await loginWith(store, user, {}, ORIGIN)];
    for (const { sid } of [old, live]) await recordCreation(sid, user);
    const { sid: due } = await loginWith(store, user, {}, ORIGIN);
    await store.end(old.sid, "logout");
    expect(await store.forget(user)).toEqual({ events: 1, signals: 0 });
    expect(await eventsOf(user)).toMatchObject([{ sid: live.sid }]);
    expect(await dueOf(store, due)).toHaveLength(1);
    const { sessions } = await store.list(user, 10, undefined);
    expect(sessions.map(({ sid }) => sid).sort()).toEqual([live.sid, due].sort());
    await refresh(live.sid, live.first);
  });

  test("a session that has expired, or has ended with all others, stays refused and expires once, without a subject", async () => {
    const { backend, store, login, logged } = context();
    await subscribe();
    const user = subject();
    const [short, all] = [await login(user, { idleTimeoutMs: SECOND, clientId: "shop" }), await login(user)];
    await store.revokeAll(undefined);
    const later = await login(user, { idleTimeoutMs: SECOND });
    await backend.advance(2 * SECOND);
    expect(await store.forget(user)).toEqual({ events: 0, signals: 2 });
    expect(outcomeOf(await store.rotate(short.sid, short.first, nonce()))).toBe("idle");
    expect(outcomeOf(await store.rotate(all.sid, all.first, nonce()))).toBe("revoked");
    expect(await store.end(all.sid, "logout")).toEqual(ALREADY_ENDED);
    const ended = [];
    for (let isDone = false; !isDone; ) {
      const step = await store.expire();
      ended.push(...step.ended);
      isDone = step.isDone;
    }
    expect(ended.filter(({ sid }) => sid === later.sid)).toEqual([{ sid: later.sid }]);
    expect(await logged(later.sid)).toEqual(["expired"]);
    expect(await signalsOf(user)).toEqual([]);
    await backend.advance(IDLE);
  });

  test("a signal stays, without the subject, and its reader reads it again", async () => {
    const { store, login } = context();
    const { log } = store.signals;
    const id = await subscribe();
    const user = subject();
    const [{ sid }, { sid: other }] = [await login(user, { clientId: "shop" }), await login(neighbour(user))];
    const partition = log.partitionOf({ sid });
    const [lease] = await log.lease([partition], "reader", 15 * SECOND);
    const start = (await log.cursors(partition)).get(id);
    if (lease === undefined || start === undefined) throw new Error("not held");
    await store.end(sid, "logout");
    await store.end(other, "logout");
    expect(await signalsOf(user)).toMatchObject([
      { signal: { sessionId: sid, subject: user, clientId: "shop", reason: "logout" }, unreadBy: [id] },
    ]);
    const before = await log.read(partition, start, 10);
    expect(await store.forget(user)).toEqual({ events: 0, signals: 1 });
    const read = await log.read(partition, start, 10);
    if (!read.ok || !before.ok) throw new Error("not read");
    const [first, ...others] = before.signals;
    const { subject: _, ...signal } = first?.signal ?? {};
    expect(read.signals).toEqual([{ signal, cursor: first?.cursor }, ...others]);
    expect(signal).toMatchObject({ sessionId: sid, clientId: "shop", reason: "logout" });
    expect(await log.advance(lease, id, read.signals[0]?.cursor ?? start, NONE)).toEqual({ ok: false, reason: "lost" });
    const [again] = await log.lease([partition], "reader", 15 * SECOND);
    if (again === undefined) throw new Error("not held");
    expect(again.fence).not.toBe(lease.fence);
    expect(await log.advance(again, id, read.signals[0]?.cursor ?? start, NONE)).toEqual({ ok: true });
    expect(await store.forget(user)).toEqual(NOTHING);
  });

  test("a signal that all have read costs no reader its lease", async () => {
    const { store, login } = context();
    const { log } = store.signals;
    const id = await subscribe();
    const user = subject();
    const { sid } = await login(user);
    const partition = log.partitionOf({ sid });
    const [lease] = await log.lease([partition], "reader2", 15 * SECOND);
    const start = (await log.cursors(partition)).get(id);
    if (lease === undefined || start === undefined) throw new Error("not held");
    await store.end(sid, "logout");
    const read = await log.read(partition, start, 10);
    const cursor = read.ok ? read.signals[0]?.cursor : undefined;
    if (cursor === undefined) throw new Error("not read");
    await log.advance(lease, id, cursor, { delivered: 1, deadLetters: 0 });
    expect(await signalsOf(user)).toMatchObject([{ unreadBy: [] }]);
    expect(await store.forget(user)).toEqual(NOTHING);
    expect(await signalsOf(user)).toEqual([]);
    expect(await log.advance(lease, id, cursor, NONE)).toEqual({ ok: true });
  });

  test("signals of a subject come in pages", async () => {
    const { store, login } = context();
    await subscribe();
    const user = subject();
    const sids: SessionId[] = [];
    for (let count = 0; count < MANY; count++) sids.push((await login(user)).sid);
    for (const sid of sids) await store.end(sid, "logout");
    const found: SessionId[] = [];
    let after: number | undefined = 0;
    while (after !== undefined) {
      const page: Awaited<ReturnType<typeof store.signals.log.ofSubject>> = await store.signals.log.ofSubject(
        user,
        after,
        40,
      );
      expect(page.signals.length).toBeLessThanOrEqual(40);
      found.push(...page.signals.map(({ signal: { sessionId } }) => sessionId));
      after = page.next;
    }
    expect(found).toEqual(sids);
    expect(await store.forget(user)).toEqual({ events: 0, signals: MANY });
    expect(await signalsOf(user)).toEqual([]);
  });

  test("a logout of many sessions that is under way is completed first", async () => {
    const { backend, store } = context();
    const user = subject();
    const sids: SessionId[] = [];
    for (let count = 0; count < MANY; count++) sids.push((await loginWith(store, user)).sid);
    await backend.beginEndAll(user, REASON, { origin: ORIGIN });
    expect(await store.forget(user)).toEqual(NOTHING);
    const { revocations } = await store.revocations(undefined);
    const logged = new Set(revocations.map(({ sid }) => sid));
    expect(sids.filter((sid) => !logged.has(sid))).toEqual([]);
    expect(await dueOf(store, ...sids)).toEqual([]);
  });
}
