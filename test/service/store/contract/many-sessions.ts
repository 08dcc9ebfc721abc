/** Tests that every store has to pass: a subject with more sessions than one script or transaction may process. */

import { expect, test } from "vitest";
import type { NewSession, SessionId } from "../../../../src/service/session/model.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import type { Context, Login } from "../../../support/store/context.ts";
import { recordOf } from "../../../support/store/event-records.ts";
import {
  ALREADY_ENDED,
  endedSessions,
  expectCreated,
  IDLE,
  newSession,
  nonce,
  SECOND,
  sidsOf,
  subject,
} from "../../../support/store/sessions.ts";

const MANY = 300;
const CAP = 1_000;

export function manySessionsContract(context: () => Context): void {
  /** Creates sessions, oldest first, some of them in one millisecond. */
  async function logins(user: string, count = MANY, more: (at: number) => Partial<NewSession> = () => ({})) {
    const { backend, store } = context();
    const created: Login[] = [];
    for (let at = 0; at < count; at++) {
      const [session, first] = [newSession(user, more(at)), nonce()];
      await store.create(session, first, { cap: CAP });
      created.push({ sid: session.sid, first: { generation: 1, nonce: first, issuedAt: storeMs(0) } });
      if (at % 50 === 49) await backend.advance(1);
    }
    return created;
  }

  async function listed(user: string, limit: number): Promise<SessionId[]> {
    const { store } = context();
    const order: string[] = [];
    const seen: SessionId[] = [];
    let from: string | undefined;
    do {
      const page = await store.list(user, limit, from);
      expect(page.sessions.length).toBe(page.next === undefined ? page.sessions.length : limit);
      for (const { sid, createdAt } of page.sessions) {
        seen.push(sid);
        order.push(`${createdAt} ${sid}`);
      }
      from = page.next;
    } while (from !== undefined);
    expect(order).toEqual([...order].sort().reverse());
    return seen;
  }

  test("pages hold every live one once, newest first, whatever has ended or expired between", async () => {
    const { backend, store } = context();
    const user = subject();
    const created = await logins(user, MANY, (at) => (at % 7 === 0 ? { idleTimeoutMs: SECOND } : {}));
    const ended = created.filter((_, at) => at % 10 === 1);
    for (const { sid } of ended) await store.end(sid, "logout");
    await backend.advance(SECOND);
    const gone = new Set(sidsOf(ended));
    const live = sidsOf(created.filter(({ sid }, at) => at % 7 > 0 && !gone.has(sid)));
    for (const limit of [7, 100]) expect((await listed(user, limit)).sort()).toEqual([...live].sort());
  });

  test("if the oldest one is replaced, the next ones end for the cap, oldest first", async () => {
    const { backend, store } = context();
    const user = subject();
    await logins(user);
    const [first, ...next] = (await listed(user, 100)).reverse();
    await backend.advance(1);
    const outcome = expectCreated(await store.create(newSession(user), nonce(), { cap: MANY - 2, replaces: first }));
    expect(outcome).toMatchObject({ replaced: { sid: first }, evicted: endedSessions(...next.slice(0, 2)) });
    expect(new Set((await listed(user, 100)).slice(1))).toEqual(new Set(next.slice(2)));
  });

  test("beyond the cap the oldest end, and of those that have expired none counts, wherever they are", async () => {
    const { backend, store } = context();
    const user = subject();
    const created = await logins(user, MANY, (at) => (at === 200 ? { idleTimeoutMs: SECOND } : {}));
    await backend.advance(SECOND);
    const next = async () => expectCreated(await store.create(newSession(user), nonce(), { cap: MANY })).evicted;
    expect(await next()).toEqual([]);
    for (let at = 0; at < 3; at++) {
      const [oldest = ""] = sidsOf(await next());
      // Sessions that were created in the same millisecond have no order.
      expect(sidsOf(created.slice(0, 50))).toContain(oldest);
      expect(await store.find(oldest as SessionId)).toEqual({ ok: false, reason: "revoked" });
    }
    expect(await listed(user, 100)).toHaveLength(MANY);
  });

  test("one that expires later frees its place when it does, and so does one that was created later", async () => {
    const { backend, store } = context();
    const user = subject();
    await logins(user, MANY, (at) => (at === 200 ? { idleTimeoutMs: 2 * SECOND } : {}));
    const next = async (more: Partial<NewSession> = {}) =>
      expectCreated(await store.create(newSession(user, more), nonce(), { cap: MANY })).evicted.length;
    // Nothing has expired yet. The store may remember that, but only until the first session expires.
    expect(await next()).toBe(1);
    await backend.advance(2 * SECOND);
    expect(await next()).toBe(0);
    expect(await next({ idleTimeoutMs: SECOND })).toBe(1);
    await backend.advance(SECOND);
    expect(await next()).toBe(0);
    expect(await next()).toBe(1);
  });

  test("a cap that was lowered ends all beyond it", async () => {
    const { store } = context();
    const user = subject();
    const created = await logins(user);
    const { evicted } = expectCreated(await store.create(newSession(user), nonce(), { cap: 20 }));
    expect(new Set(sidsOf(evicted)).size).toBe(MANY - 19);
    expect(sidsOf(evicted)).toEqual(expect.arrayContaining(sidsOf(created.slice(0, 250))));
    expect(await listed(user, 100)).toHaveLength(20);
  });

  test("one that is replaced leaves its place to the new one, and ends once", async () => {
    const { store } = context();
    const user = subject();
    const created = await logins(user);
    const [, old] = created;
    const wanted = newSession(user);
    const outcome = expectCreated(await store.create(wanted, nonce(), { cap: MANY, replaces: old?.sid }));
    expect(outcome).toMatchObject({ replaced: { sid: old?.sid }, evicted: [] });
    const again = expectCreated(await store.create(newSession(user), nonce(), { cap: 100, replaces: wanted.sid }));
    expect(again.replaced).toEqual({ sid: wanted.sid });
    expect(again.evicted).toHaveLength(MANY - 100);
  });

  test("all but one end, once each, and a login after it lives, also one in the same millisecond", async () => {
    const { store, login } = context();
    const user = subject();
    const created = await logins(user);
    const spared = created[150] as Login;
    const others = sidsOf(created.filter((each) => each !== spared));
    const outcome = await store.endAll(user, "revoked_others", { except: spared.sid, caller: spared.sid });
    const fresh = await login(user);
    if (!outcome.ok) throw new Error(outcome.reason);
    expect(outcome.count).toBe(MANY - 1);
    expect(sidsOf(outcome.ended).sort()).toEqual([...others].sort());
    expect(await listed(user, 100)).toEqual([fresh.sid, spared.sid]);
    const mine = new Set(sidsOf(created));
    const entries = (await store.revocations(undefined)).revocations.filter(({ sid }) => mine.has(sid));
    expect(entries.map(({ sid }) => sid).sort()).toEqual([...others].sort());
    expect(new Set(entries.map(({ reason }) => reason))).toEqual(new Set(["revoked_others"]));
    for (const { sid, first } of created) {
      const result = await store.rotate(sid, first, nonce());
      expect(result.ok).toBe(sid === spared.sid);
      if (!result.ok) expect(result.reason).toBe("revoked");
    }
    expect((await store.endAll(user, "revoked_subject")).ok).toBe(true);
    expect(await listed(user, 100)).toEqual([]);
  });

  test("each leaves one due record, with who asked, also where another one does the rest", async () => {
    const { backend, store } = context();
    const due = async (sids: readonly SessionId[]) => {
      const mine = new Set<string>(sids);
      const records = (await store.dueRecords()).flatMap((part) => part.records);
      return records.filter(({ key }) => mine.has(key));
    };
    const user = subject();
    const sids = sidsOf(await logins(user, 150));
    const outcome = await store.endAll(user, "revoked_subject", { origin: { admin: "support" } });
    expect(outcome).toMatchObject({ count: sids.length });
    const own = await due(sids);
    expect(own.length).toBeGreaterThan(0); // One call returns only a limited number of records.
    expect(new Set(own.map(({ event }) => `${event.subject} ${event.reason} ${event.admin}`))).toEqual(
      new Set([`${user} revoked_subject support`]),
    );
    /** Writes the waiting events of these sessions to the log until none is left. Returns the keys under which the events were waiting. */
    const record = async (wanted: readonly SessionId[]) => {
      const recorded: string[] = [];
      for (let left = await due(wanted); left.length > 0; left = await due(wanted)) {
        recorded.push(...left.map(({ key }) => key));
        await store.recordEvents(
          left.map(({ event }) => recordOf(event)),
          60 * SECOND,
        );
      }
      return recorded.sort();
    };
    expect(await record(sids)).toEqual([...sids].sort());

    const other = subject();
    const others = sidsOf(await logins(other, 150));
    await backend.beginEndAll(other, "revoked_subject", { origin: {} });
    // So far, only some of the sessions have been ended. The next call of the store ends the rest, for the reason of the first call and not
    // for its own.
    await store.end(others[0] as SessionId, "logout");
    expect((await due(others)).every(({ event }) => event.reason === "revoked_subject")).toBe(true);
    expect(await record(others)).toEqual([...others].sort());
  });

  test("those that have expired are not counted among the ended", async () => {
    const { backend, store } = context();
    const user = subject();
    await logins(user, MANY, (at) => (at % 3 === 0 ? { idleTimeoutMs: SECOND } : {}));
    await backend.advance(SECOND - 1); // The newest were created a millisecond ago, and expire in this one.
    expect(await store.endAll(user, "revoked_subject")).toMatchObject({ ok: true, count: (MANY * 2) / 3 });
  });

  test("those that a logout of everyone has ended do not end again, to the millisecond", async () => {
    const { store, login } = context();
    const user = subject();
    await logins(user);
    await login(user); // in the millisecond of the logout of everyone
    await store.revokeAll(undefined);
    const after = await logins(user);
    const outcome = await store.endAll(user, "revoked_subject");
    expect(outcome).toMatchObject({ ok: true, count: MANY });
    expect(outcome.ok && sidsOf(outcome.ended).toSorted()).toEqual(sidsOf(after).toSorted());
  });

  test("all end although the clock was set back since the newest was created", async () => {
    const { backend, store } = context();
    const user = subject();
    const created = await logins(user);
    await backend.advance(-10 * SECOND);
    expect(await store.endAll(user, "revoked_subject")).toMatchObject({ ok: true, count: MANY });
    await backend.advance(10 * SECOND);
    for (const { sid } of created) expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
  });

  test("of two that end each other's at the same time, one ends all and the other learns that it has ended", async () => {
    const { backend, store } = context();
    const other = await backend.open();
    const user = subject();
    const created = await logins(user);
    const [a, b] = [created[3] as Login, created[280] as Login];
    const outcomes = await Promise.all([
      store.endAll(user, "revoked_others", { except: a.sid, caller: a.sid }),
      other.endAll(user, "revoked_others", { except: b.sid, caller: b.sid }),
    ]);
    const [won, lost] = outcomes[0].ok ? outcomes : [outcomes[1], outcomes[0]];
    expect(won).toMatchObject({ ok: true, count: MANY - 1 });
    expect(lost).toEqual({ ok: false, reason: "caller_ended" });
    expect(await listed(user, 10)).toEqual([outcomes[0].ok ? a.sid : b.sid]);
  });

  test("one that was begun and left ends all at once, and others do the rest", async () => {
    const { backend, store, login } = context();
    const user = subject();
    const created = await logins(user);
    const spared = created[0] as Login;
    await backend.beginEndAll(user, "revoked_others", { except: spared.sid });
    for (const { sid, first } of created.slice(1)) {
      expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
      expect(await store.rotate(sid, first, nonce())).toEqual({ ok: false, reason: "revoked" });
    }
    // This session is created in the millisecond in which the logout of the other sessions began, and is not ended with them.
    const fresh = await login(user);
    expect(await listed(user, 10)).toEqual([fresh.sid, spared.sid]);

    const mine = new Set(sidsOf(created));
    const logged = async () => {
      const { revocations } = await store.revocations(undefined);
      return new Set(sidsOf(revocations.filter(({ sid }) => mine.has(sid))));
    };
    while ((await logged()).size < MANY - 1) await new Promise(setImmediate);
    expect(await logged()).not.toContain(spared.sid);
    expect(await listed(user, 10)).toEqual([fresh.sid, spared.sid]);
    expect((await store.rotate(fresh.sid, fresh.first, nonce())).ok).toBe(true);
  });

  test("a logout of a session that ended with others is acknowledged once verifiers know of it", async () => {
    const { backend, store } = context();
    const user = subject();
    const created = await logins(user);
    const last = (created.at(-1) as Login).sid;
    await backend.beginEndAll(user, "revoked_subject");
    expect(await store.end(last, "logout")).toEqual(ALREADY_ENDED);
    const { revocations } = await store.revocations(undefined);
    expect(revocations.filter(({ sid }) => sid === last)).toMatchObject([{ reason: "revoked_subject" }]);
  });

  test("a session that was ended in between ends once, by the first", async () => {
    const { backend, store } = context();
    const user = subject();
    const created = await logins(user);
    const gone = created[10] as Login;
    await store.end(gone.sid, "logout");
    expect(await store.endAll(user, "revoked_subject")).toMatchObject({ count: MANY - 1 });
    const { revocations } = await store.revocations(undefined);
    expect(revocations.filter(({ sid }) => sid === gone.sid)).toMatchObject([{ reason: "logout" }]);
    await backend.advance(IDLE);
    expect(await listed(user, 10)).toEqual([]);
  });
}
