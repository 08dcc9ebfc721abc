/** What every store keeps of the events of sessions, and what it has steps leave to be recorded. */
import { expect, test } from "vitest";
import {
  type DueRecord,
  type EventRecord,
  MAX_ENDS_OF_ALL,
  MAX_EVENT_SESSIONS,
  MAX_EVENTS_PER_SESSION,
  type Origin,
  type SessionEvent,
} from "../../src/session/events.ts";
import type { SessionId } from "../../src/session/model.ts";
import type { SessionStore } from "../../src/session/ports.ts";
import { later, storeMs } from "../../src/session/time.ts";
import type { Backend } from "./backends.ts";
import { recordOf, type StoreEvent } from "./event-records.ts";
import { newSession, nonce, REUSE_INTERVAL, SECOND, sidOf, subject } from "./sessions.ts";

type Context = { readonly backend: Backend; readonly store: SessionStore };

const RETENTION = 600 * SECOND;
const ORIGIN = { address: "192.0.2.7", admin: "support", requestId: "r1", traceId: "t1" };
const BY = { address: "192.0.2.7", admin: "support" };
const IDS = { requestId: "r1", traceId: "t1" };

export function eventsContract(context: () => Context): void {
  const record = (events: readonly StoreEvent[]) => context().store.recordEvents(events.map(recordOf), RETENTION);

  async function login(user: string, more: Parameters<typeof newSession>[1] = {}, origin?: Origin) {
    const [session, first] = [newSession(user, more), nonce()];
    await context().store.create(session, first, 1_000, undefined, origin);
    return { sid: session.sid, first: { generation: 1, nonce: first, issuedAt: storeMs(0) } };
  }

  /** What is due of some sessions; of the end of all, without any. */
  async function due(...sids: SessionId[]): Promise<DueRecord[]> {
    const parts = await context().store.dueRecords();
    const records = parts.flatMap(({ records }) => records);
    return records.filter(({ event: { sid } }) => (sid === undefined ? sids.length === 0 : sids.includes(sid)));
  }

  const withoutAll = (events: readonly SessionEvent[]) => events.filter(({ type }) => type !== "all_ended");

  test("events come back as they were recorded, by session and by subject", async () => {
    const { store } = context();
    const user = subject('müller\n"');
    const client = { userAgent: "<b>\n\u{1F980}", ipAddress: "::1", displayName: "x" };
    const [{ sid: a }, { sid: b }] = [await login(user, {}, {}), await login(user, {}, {})];
    await store.end(a, "revoked_by_admin", {});
    const created: StoreEvent = { time: storeMs(1), type: "created", sid: a, subject: user, client, clientId: "web" };
    const events: StoreEvent[] = [
      created,
      { time: storeMs(2), type: "created", sid: b, subject: user, address: "192.0.2.1", client, clientId: "" },
      { time: storeMs(3), type: "elevated", sid: a, subject: user },
      {
        time: storeMs(4),
        type: "ended",
        sid: a,
        subject: user,
        reason: "revoked_by_admin",
        admin: "support",
        address: "::1",
      },
    ];
    await record(events.slice(0, 3));
    await record(events.slice(3));
    const bySubject = withoutAll(await store.events({ subject: user }));
    expect(bySubject.toSorted((x, y) => x.time - y.time)).toEqual(events);
    expect(withoutAll(await store.events({ sid: b }))).toEqual(events.slice(1, 2));
    expect(withoutAll(await store.events({ subject: subject() }))).toEqual([]);
    expect(withoutAll(await store.events({ sid: sidOf(user) }))).toEqual([]);
  });

  test("the end of all is among the events of everybody, and bounded", async () => {
    const { store } = context();
    const ends: StoreEvent[] = [];
    for (let at = 0; at < MAX_ENDS_OF_ALL + 3; at++) {
      const revokedUntil = await store.revokeAll(storeMs(at + 1), {});
      ends.push({ time: storeMs(1_000 + at), type: "all_ended", revokedUntil, admin: "root" });
    }
    for (const end of ends) await record([end]);
    const events = await store.events({ subject: subject() });
    expect(events).toEqual(ends.slice(-MAX_ENDS_OF_ALL));
    expect(await store.events({ sid: sidOf("x") })).toEqual(events);
  });

  test("a session keeps a bounded number of events, and its end always", async () => {
    const { store } = context();
    const user = subject();
    const { sid } = await login(user);
    await store.end(sid, "logout", {});
    const many = Array.from({ length: 2 * MAX_EVENTS_PER_SESSION }, (_, time): StoreEvent => {
      return { time: storeMs(time), type: "elevated", sid, subject: user };
    });
    await record(many);
    await record([{ time: storeMs(99), type: "ended", sid, subject: user, reason: "logout" }]);
    const events = withoutAll(await store.events({ sid }));
    expect(events).toHaveLength(MAX_EVENTS_PER_SESSION + 1);
    expect(events.at(-1)?.type).toBe("ended");
  });

  test("a subject has the events of its last sessions", async () => {
    const { store } = context();
    const user = subject();
    const events = Array.from({ length: MAX_EVENT_SESSIONS + 5 }, (_, time): StoreEvent => {
      return { time: storeMs(time), type: "elevated", sid: sidOf(user), subject: user };
    });
    await record(events);
    const found = withoutAll(await store.events({ subject: user }));
    expect(found.toSorted((x, y) => x.time - y.time)).toEqual(events.slice(5));
  });

  test("an event that is written several times is kept once, and equal ones with ids are kept apart", async () => {
    const { store } = context();
    const user = subject();
    const { sid } = await login(user, {}, {});
    await store.end(sid, "logout", {});
    const elevated: StoreEvent = { time: storeMs(2), type: "elevated", sid, subject: user };
    const records: EventRecord[] = [
      recordOf({ time: storeMs(1), type: "created", sid, subject: user }),
      { ...recordOf(elevated), id: "a" },
      { ...recordOf(elevated), id: "b" },
      recordOf({ time: storeMs(3), type: "ended", sid, subject: user, reason: "logout" }),
    ];
    for (let times = 0; times < 3; times++) expect(await store.recordEvents(records, RETENTION)).toEqual([]);
    await store.recordEvents([recordOf({ time: storeMs(9), type: "ended", sid, reason: "logout" })], RETENTION);
    expect(withoutAll(await store.events({ sid }))).toEqual(records.map(({ event }) => event));
  });

  test("where events are not kept, what is due is taken away all the same", async () => {
    const { store } = context();
    const { sid } = await login(subject(), {}, {});
    await store.recordEvents([recordOf({ time: storeMs(1), type: "created", sid })], 0);
    expect(await due(sid)).toEqual([]);
    expect(withoutAll(await store.events({ sid }))).toEqual([]);
  });

  test("one instance alone claims what is due, and from then on it is due anew", async () => {
    const { backend, store } = context();
    const { sid } = await login(subject(), {}, ORIGIN);
    const [first] = await due(sid);
    if (first === undefined) throw new Error("nothing is due");
    await backend.advance(5 * SECOND);
    const claims = await Promise.all([store.claimRecord(first), store.claimRecord(first), store.claimRecord(first)]);
    expect(claims.filter(Boolean)).toHaveLength(1);
    expect(await due(sid)).toEqual([{ ...first, since: first.since + 5 * SECOND }]);
    await store.recordEvents([recordOf(first.event)], RETENTION);
    expect(await store.claimRecord({ ...first, since: later(first.since, 5 * SECOND) })).toBe(false);
    expect(await due(sid)).toEqual([]);
  });

  test("a login leaves what is to be recorded of it, of the session that it replaces, and of those that it makes room by", async () => {
    const { backend, store } = context();
    const [user, client] = [subject("ä\nb"), { userAgent: "u".repeat(300), ipAddress: "::1", displayName: "x" }];
    const [a, b] = [await login(user), await login(user)];
    const session = newSession(user, { client, clientId: "app" });
    await store.create(session, nonce(), 1, a.sid, ORIGIN);
    const time = backend.now();
    const shown = { clientId: "app", client: { ...client, userAgent: "u".repeat(200) } };
    const common = { time, subject: user, ...BY };
    const expected: StoreEvent[] = [
      { ...common, type: "ended", sid: a.sid, reason: "replaced" },
      { ...common, type: "ended", sid: b.sid, reason: "session_limit" },
      { ...common, type: "created", sid: session.sid, ...shown },
    ];
    const found = await due(a.sid, b.sid, session.sid);
    expect(found).toHaveLength(3);
    for (const event of expected)
      expect(found.find(({ event: { sid } }) => sid === event.sid)).toMatchObject({ event, ids: IDS });
    await store.create(session, nonce(), 1, a.sid, ORIGIN); // run twice
    expect(await due(a.sid, b.sid, session.sid)).toEqual(found);
  });

  test("a login in place of another subject's session leaves the end of that", async () => {
    const { store } = context();
    const other = subject();
    const { sid } = await login(other);
    const created = newSession(subject());
    await store.create(created, nonce(), 9, sid, ORIGIN);
    const [ended] = await due(sid);
    expect(ended?.event).toMatchObject({ type: "ended", sid, subject: other, reason: "replaced", ...BY });
    expect(await due(created.sid)).toMatchObject([{ event: { type: "created" } }]);
  });

  type Ended = { readonly user: string; readonly a: SessionId; readonly b: SessionId };
  const endings: readonly [string, (store: SessionStore, known: Ended) => Promise<unknown>, StoreEvent["reason"]][] = [
    ["an ending", (store, { a }) => store.end(a, "logout", ORIGIN), "logout"],
    [
      "an ending by another session",
      (store, { a, b }) => store.endOwned(b, a, "revoked_by_owner", ORIGIN),
      "revoked_by_owner",
    ],
    [
      "the ending of others",
      (store, { user, b }) => store.endAll(user, "revoked_others", { except: b, actor: b, origin: ORIGIN }),
      "revoked_others",
    ],
    [
      "the ending of all but one",
      (store, { user, b }) => store.endAll(user, "revoked_subject", { except: b, origin: ORIGIN }),
      "revoked_subject",
    ],
  ];
  test.each(endings)("%s leaves what is to be recorded of it, once", async (_, end, reason) => {
    const { backend, store } = context();
    const user = subject("x\ny");
    const [{ sid: a }, { sid: b }] = [await login(user), await login(user)];
    await end(store, { user, a, b });
    const event = { time: backend.now(), type: "ended", sid: a, subject: user, reason, ...BY };
    const left = await due(a, b);
    expect(left).toMatchObject([{ key: a, event, ids: IDS }]);
    await store.recordEvents([recordOf(event as StoreEvent)], RETENTION);
    await end(store, { user, a, b });
    expect(await due(a, b)).toEqual([]);
  });

  test("reuse leaves what is to be recorded of it, without the requester", async () => {
    const { backend, store } = context();
    const user = subject();
    const { sid, first } = await login(user);
    await store.rotate(sid, first, nonce());
    await backend.advance(3 * REUSE_INTERVAL);
    const reused = await store.rotate(sid, { ...first, nonce: nonce() }, nonce());
    expect(reused).toMatchObject({ ok: false, reason: "reuse" });
    const event: StoreEvent = { time: backend.now(), type: "ended", sid, subject: user, reason: "reuse" };
    expect(await due(sid)).toEqual([{ key: sid, since: expect.any(Number), event, ids: {} }]);
  });

  test("nothing is left of what ends nothing, unless the caller has proven that there was a session", async () => {
    const { store } = context();
    const [user, sid] = [subject(), sidOf("lost")];
    await store.end(sid, "revoked_by_admin", ORIGIN);
    expect(await due(sid)).toEqual([]);
    const lost = sidOf(user);
    await store.end(lost, "logout", { ...ORIGIN, subject: user });
    expect(await due(lost)).toMatchObject([{ event: { sid: lost, subject: user, reason: "logout" } }]);
    const ended = await login(subject());
    await store.end(ended.sid, "logout");
    await store.end(ended.sid, "logout", { ...ORIGIN, subject: user });
    expect(await due(ended.sid)).toEqual([]); // the first one asked for no record, and the second one ended nothing
  });

  test("the end of all leaves one record, until it is written", async () => {
    const { backend, store } = context();
    const revokedUntil = await store.revokeAll(storeMs(77), ORIGIN);
    const event: StoreEvent = { time: backend.now(), type: "all_ended", revokedUntil, ...BY };
    const ofThis = async () => (await due()).filter(({ key }) => key === `*${revokedUntil}`);
    expect(await ofThis()).toMatchObject([{ event, ids: IDS }]);
    await store.recordEvents([recordOf(event)], RETENTION);
    expect(await ofThis()).toEqual([]);
  });
}
