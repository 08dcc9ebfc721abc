/** Tests that every store has to pass: the events of sessions that are kept. */
import { expect, test } from "vitest";
import {
  type EventRecord,
  MAX_ENDS_OF_ALL,
  MAX_EVENT_SESSIONS,
  MAX_EVENTS_PER_SESSION,
  type SessionEvent,
} from "../../../../src/service/session/events/events.ts";
import type { SessionId } from "../../../../src/service/session/model.ts";
import type { SessionStore } from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import type { Context } from "../../../support/store/context.ts";
import { dueOf, loginWith, RETENTION, recordOf, type StoreEvent } from "../../../support/store/event-records.ts";
import { sidOf, subject } from "../../../support/store/sessions.ts";

const record = (store: SessionStore, events: readonly StoreEvent[]) =>
  store.recordEvents(events.map(recordOf), RETENTION);

const withoutAll = (events: readonly SessionEvent[]) => events.filter(({ type }) => type !== "all_ended");

/** Returns the event of a live session's creation, as the service records it. */
async function creationOf(store: SessionStore, sid: SessionId, more: Partial<StoreEvent> = {}): Promise<StoreEvent> {
  const found = await store.find(sid);
  if (!found.ok) throw new Error(found.reason);
  const { subject, client, clientId, createdAt } = found.session;
  const time = storeMs(createdAt + store.shiftMs({ sid }));
  return { time, type: "created", sid, subject, client, clientId, ...more };
}

export function eventsContract(context: () => Context): void {
  test("events come back as they were recorded, by session and by subject", async () => {
    const { store } = context();
    const user = subject('müller\n"');
    const client = { userAgent: "<b>\n\u{1F980}", ipAddress: "::1", displayName: "x" };
    const [{ sid: a }, { sid: b }] = [
      await loginWith(store, user, {}, {}),
      await loginWith(store, user, { client }, {}),
    ];
    await store.end(a, "revoked_by_admin", {});
    const created: StoreEvent = { time: storeMs(1), type: "created", sid: a, subject: user, client, clientId: "web" };
    const events: StoreEvent[] = [
      created,
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
      await creationOf(store, b, { address: "192.0.2.1" }),
    ];
    await record(store, [...events.slice(0, 2), ...events.slice(3)]);
    await record(store, events.slice(2, 3));
    const bySubject = withoutAll(await store.events({ subject: user }));
    expect(bySubject.toSorted((x, y) => x.time - y.time)).toEqual(events);
    expect(withoutAll(await store.events({ sid: b }))).toEqual(events.slice(3));
    expect(withoutAll(await store.events({ subject: subject() }))).toEqual([]);
    expect(withoutAll(await store.events({ sid: sidOf(user) }))).toEqual([]);
  });

  test("events are found for as long as they are kept, also after the retention was lowered", async () => {
    const { backend, store } = context();
    const user = subject();
    const [{ sid: kept }, { sid }] = [await loginWith(store, user), await loginWith(store, user)];
    const elevated = { type: "elevated", subject: user, time: storeMs(1) } as const;
    await record(store, [{ ...elevated, sid: kept }]);
    await store.recordEvents([recordOf({ ...elevated, sid })], RETENTION / 10);
    await backend.advance(RETENTION / 2);
    expect(withoutAll(await store.events({ subject: user }))).toContainEqual({ ...elevated, sid: kept });
  });

  const inOrder = (events: readonly SessionEvent[]) => withoutAll(events).toSorted((x, y) => x.time - y.time);

  test("the creation is listed for as long as the session lives, and with its end", async () => {
    const { backend, store } = context();
    const user = subject('"é\n');
    const client = { userAgent: `${"a".repeat(199)}\u{1F980}/`, ipAddress: "2001:db8::1", displayName: "x\u007f" };
    const { sid } = await loginWith(store, user, { client, clientId: "é".repeat(150) }, {});
    const facts = { address: "192.0.2.7", admin: "login\\", actor: '"', newDevice: true } as const;
    const created = await creationOf(store, sid, facts);
    await record(store, [created]);
    const cut = { client: { ...client, userAgent: `${"a".repeat(199)}\uFFFD` } };
    const expected = [{ ...created, ...cut }];
    expect(withoutAll(await store.events({ sid }))).toEqual(expected);
    await backend.advance(2 * RETENTION);
    const elevated: StoreEvent = { time: storeMs(created.time + 1), type: "elevated", sid, subject: user };
    await record(store, [elevated]);
    expect(inOrder(await store.events({ subject: user }))).toEqual([...expected, elevated]);
    expect(await store.eventSessions(user)).toEqual([sid]);
    await store.end(sid, "logout", {});
    const ended: StoreEvent = { ...elevated, time: storeMs(created.time + 2), type: "ended", reason: "logout" };
    for (const events of [[], [ended]]) {
      await record(store, events);
      for (const of of [{ sid }, { subject: user }]) {
        expect(inOrder(await store.events(of))).toEqual([...expected, elevated, ...events]);
      }
      expect(await store.eventSessions(user)).toEqual([sid]);
    }
    expect(await store.forget(user)).toEqual({ events: 3, signals: 0 });
    expect(withoutAll(await store.events({ sid }))).toEqual([]);
  });

  test("the creation is listed for as long as refreshes make the session live", async () => {
    const { backend, store, refresh } = context();
    const { sid, first } = await loginWith(store, subject(), { idleTimeoutMs: RETENTION }, {});
    await record(store, [await creationOf(store, sid)]);
    let token = first;
    for (let times = 0; times < 3; times++) {
      await backend.advance(0.9 * RETENTION);
      token = (await refresh(sid, token)).child;
    }
    expect(withoutAll(await store.events({ sid }))).toMatchObject([{ type: "created", sid }]);
  });

  test("the creations of sessions that expire or end with all others stay listed", async () => {
    const { backend, store } = context();
    const user = subject();
    const create = async () => {
      const { sid } = await loginWith(store, user, { idleTimeoutMs: RETENTION }, {});
      const created = await creationOf(store, sid);
      await record(store, [created]);
      return created;
    };
    const created = [await create()];
    await store.revokeAll(undefined);
    created.push(await create());
    await backend.advance(RETENTION);
    for (let isDone = false; !isDone; ) ({ isDone } = await store.expire());
    expect(inOrder(await store.events({ subject: user }))).toEqual(created);
  });

  test("the end of all is among the events of everybody, and bounded", async () => {
    const { store } = context();
    const ends: StoreEvent[] = [];
    for (let at = 0; at < MAX_ENDS_OF_ALL + 3; at++) {
      const revokedUntil = await store.revokeAll(storeMs(at + 1), {});
      ends.push({ time: storeMs(1_000 + at), type: "all_ended", revokedUntil, admin: "root" });
    }
    for (const end of ends) await record(store, [end]);
    const events = await store.events({ subject: subject() });
    expect(events).toEqual(ends.slice(-MAX_ENDS_OF_ALL));
    expect(await store.events({ sid: sidOf("x") })).toEqual(events);
  });

  test("a session keeps a bounded number of events, and its end always", async () => {
    const { store } = context();
    const user = subject();
    const { sid } = await loginWith(store, user);
    const many = Array.from({ length: 2 * MAX_EVENTS_PER_SESSION }, (_, time): StoreEvent => {
      return { time: storeMs(time), type: "elevated", sid, subject: user };
    });
    await record(store, many);
    await store.end(sid, "logout", {});
    await record(store, [{ time: storeMs(99), type: "ended", sid, subject: user, reason: "logout" }]);
    const events = withoutAll(await store.events({ sid }));
    expect(events).toHaveLength(MAX_EVENTS_PER_SESSION + 1);
    expect(events.at(-1)?.type).toBe("ended");
  });

  test("a subject has the events of its last sessions", async () => {
    const { store } = context();
    const user = subject();
    const events: StoreEvent[] = [];
    for (let time = 0; time < MAX_EVENT_SESSIONS + 5; time++) {
      const { sid } = await loginWith(store, user);
      events.push({ time: storeMs(time), type: "elevated", sid, subject: user });
    }
    await record(store, events);
    const found = withoutAll(await store.events({ subject: user }));
    expect(found.toSorted((x, y) => x.time - y.time)).toEqual(events.slice(5));
    expect(await store.eventSessions(user)).toEqual(events.map(({ sid }) => sid).sort());
    expect(await store.eventSessions(subject())).toEqual([]);
  });

  test("an event of a session that is not live and has no events is not kept", async () => {
    const { store } = context();
    const user = subject();
    const { sid } = await loginWith(store, user);
    await store.end(sid, "logout");
    await record(store, [{ time: storeMs(1), type: "elevated", sid, subject: user }]);
    expect(withoutAll(await store.events({ sid }))).toEqual([]);
    expect(await store.eventSessions(user)).toEqual([]);
  });

  test("an event that is written several times is kept once, and equal ones with ids are kept apart", async () => {
    const { store } = context();
    const user = subject();
    const { sid } = await loginWith(store, user, {}, {});
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
    const { sid } = await loginWith(store, subject(), {}, {});
    await store.recordEvents([recordOf({ time: storeMs(1), type: "created", sid })], 0);
    expect(await dueOf(store, sid)).toEqual([]);
    expect(withoutAll(await store.events({ sid }))).toEqual([]);
  });
}
