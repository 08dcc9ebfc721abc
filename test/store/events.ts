/** What every store keeps of the events of sessions. */
import { expect, test } from "vitest";
import {
  MAX_ENDS_OF_ALL,
  MAX_EVENT_SESSIONS,
  MAX_EVENTS_PER_SESSION,
  type SessionEvent,
} from "../../src/session/events.ts";
import type { SessionStore } from "../../src/session/ports.ts";
import type { Backend } from "./backends.ts";
import { SECOND, sidOf, subject } from "./sessions.ts";

type Context = { readonly backend: Backend; readonly store: SessionStore };

const RETENTION = 600 * SECOND;

export function eventsContract(context: () => Context): void {
  test("events come back as they were recorded, by session and by subject", async () => {
    const { store } = context();
    const user = subject('müller\n"');
    const [a, b] = [sidOf(user), sidOf(user)];
    const client = { userAgent: "<b>\n\u{1F980}", ipAddress: "::1", displayName: "x" };
    const created: SessionEvent = { time: 1, type: "created", sid: a, subject: user, client, clientId: "web" };
    const events: SessionEvent[] = [
      created,
      { time: 2, type: "created", sid: b, subject: user, address: "192.0.2.1", client, clientId: "" },
      { time: 3, type: "elevated", sid: a, subject: user },
      { time: 4, type: "ended", sid: a, subject: user, reason: "revoked_by_admin", admin: "support", address: "::1" },
    ];
    await store.recordEvents(events.slice(0, 3), RETENTION);
    await store.recordEvents(events.slice(3), RETENTION);
    const ofAll = ({ type }: SessionEvent) => type !== "all_ended";
    const bySubject = (await store.events({ subject: user })).filter(ofAll);
    expect(bySubject.toSorted((x, y) => x.time - y.time)).toEqual(events);
    expect((await store.events({ sid: b })).filter(ofAll)).toEqual(events.slice(1, 2));
    expect((await store.events({ subject: subject() })).filter(ofAll)).toEqual([]);
    expect((await store.events({ sid: sidOf(user) })).filter(ofAll)).toEqual([]);
  });

  test("the end of all is among the events of everybody, and bounded", async () => {
    const { store } = context();
    const ends = Array.from({ length: MAX_ENDS_OF_ALL + 3 }, (_, at): SessionEvent => {
      return { time: 1_000 + at, type: "all_ended", revokedUntil: at, admin: "root" };
    });
    for (const end of ends) await store.recordEvents([end], RETENTION);
    const events = await store.events({ subject: subject() });
    expect(events).toEqual(ends.slice(-MAX_ENDS_OF_ALL));
    expect(await store.events({ sid: sidOf("x") })).toEqual(events);
  });

  test("a session keeps a bounded number of events, and its end always", async () => {
    const { store } = context();
    const user = subject();
    const sid = sidOf(user);
    const many = Array.from({ length: 2 * MAX_EVENTS_PER_SESSION }, (_, time): SessionEvent => {
      return { time, type: "elevated", sid, subject: user };
    });
    await store.recordEvents(many, RETENTION);
    await store.recordEvents([{ time: 99, type: "ended", sid, subject: user, reason: "logout" }], RETENTION);
    const events = (await store.events({ sid })).filter(({ type }) => type !== "all_ended");
    expect(events).toHaveLength(MAX_EVENTS_PER_SESSION + 1);
    expect(events.at(-1)?.type).toBe("ended");
  });

  test("a subject has the events of its last sessions", async () => {
    const { store } = context();
    const user = subject();
    const created = Array.from({ length: MAX_EVENT_SESSIONS + 5 }, (_, time): SessionEvent => {
      return { time, type: "created", sid: sidOf(user), subject: user };
    });
    await store.recordEvents(created, RETENTION);
    const events = (await store.events({ subject: user })).filter(({ type }) => type === "created");
    expect(events.toSorted((x, y) => x.time - y.time)).toEqual(created.slice(5));
  });
}
