/** Tests that every store has to pass: the end of all sessions of all subjects. */
import { hash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { storeMs } from "../../../../src/service/session/time.ts";
import type { Context } from "../../../support/store/context.ts";
import { hints } from "../../../support/store/hints.ts";
import {
  ALREADY_ENDED,
  expectCreated,
  MARKER_LIFE,
  newSession,
  nonce,
  SECOND,
  subject,
} from "../../../support/store/sessions.ts";

export function revokeAllContract(context: () => Context): void {
  describe("revokeAll", () => {
    test("every session that is there ends, of every subject, and one that is created in the same millisecond lives", async () => {
      const { backend, store, login, refresh, logged } = context();
      const users = Array.from({ length: 20 }, () => subject());
      const before = await Promise.all(users.map((user) => login(user)));
      const until = await store.revokeAll(undefined);
      const after = await Promise.all(users.map((user) => login(user)));
      expect(until).toBe(backend.now());
      for (const [at, user] of users.entries()) {
        const [old, fresh] = [before[at], after[at]];
        if (old === undefined || fresh === undefined) throw new Error("no session");
        expect(await store.find(old.sid)).toEqual({ ok: false, reason: "revoked" });
        expect(await store.rotate(old.sid, old.first, nonce())).toEqual({ ok: false, reason: "revoked" });
        expect(await store.end(old.sid, "logout")).toEqual(ALREADY_ENDED);
        expect(await store.endOwned(old.sid, fresh.sid, "logout")).toEqual({ ok: false, reason: "caller_ended" });
        expect(await store.endOwned(fresh.sid, old.sid, "logout")).toEqual({ ok: false, reason: "not_found" });
        const found = await store.find(fresh.sid);
        if (!found.ok) throw new Error("the login after it is not live");
        expect(found.session.createdAt).toBeGreaterThan(until);
        expect(await refresh(fresh.sid, fresh.first)).toMatchObject({ outcome: "rotate" });
        expect((await store.list(user, 10, undefined)).sessions.map(({ sid }) => sid)).toEqual([fresh.sid]);
      }
      // The log has a single entry for the end of all sessions, and none for each session.
      for (const { sid } of before) expect(await logged(sid)).toEqual([]);
      expect((await store.revocations(undefined)).revokedUntil).toBe(until);
    });

    test("those that have ended neither count towards the cap nor are ended again", async () => {
      const { store, login } = context();
      const user = subject();
      const old = [await login(user), await login(user)];
      await store.revokeAll(undefined);
      expect(expectCreated(await store.create(newSession(user), nonce(), { cap: 1 })).evicted).toEqual([]);
      const outcome = await store.endAll(user, "revoked_subject");
      if (!outcome.ok) throw new Error(outcome.reason);
      expect(outcome.ended).toHaveLength(1);
      for (const { sid } of old) expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
    });

    test("of a time, those that were created before it end, to the millisecond, whenever they were refreshed", async () => {
      const { backend, store, login, refresh } = context();
      const [a, b, c] = [subject(), subject(), subject()];
      // An earlier test has ended all sessions at the present time. The logins of this test must come later.
      await backend.advance(SECOND);
      const early = await login(a);
      await backend.advance(1);
      const time = backend.now();
      const onTime = await login(b);
      await backend.advance(SECOND);
      await refresh(early.sid, early.first);
      const late = await login(c);
      expect(await store.revokeAll(time)).toBe(time - 1);
      expect(await store.find(early.sid)).toEqual({ ok: false, reason: "revoked" });
      expect((await store.find(onTime.sid)).ok).toBe(true);
      expect((await store.find(late.sid)).ok).toBe(true);
      // This second time is earlier, which makes no session live again.
      const nothingMore = await store.revokeAll(storeMs(time - 500));
      expect(nothingMore).toBe(time - 501);
      expect(await store.find(early.sid)).toEqual({ ok: false, reason: "revoked" });
    });

    test("a time that is still to come counts as now", async () => {
      const { backend, store, login } = context();
      const before = await login(subject());
      expect(await store.revokeAll(storeMs(backend.now() + 1e9))).toBe(backend.now());
      expect(await store.find(before.sid)).toEqual({ ok: false, reason: "revoked" });
      expect((await store.find((await login(subject())).sid)).ok).toBe(true);
    });

    test("a clock that was set back since the last login spares no session, and ends no later one", async () => {
      const { backend, store, login } = context();
      const before = await login(subject());
      const other = await backend.open();
      await backend.advance(-10 * SECOND);
      await other.revokeAll(undefined);
      const after = await login(subject());
      expect(await store.find(before.sid)).toEqual({ ok: false, reason: "revoked" });
      expect((await store.find(after.sid)).ok).toBe(true);
      await backend.advance(20 * SECOND);
      expect((await store.find(after.sid)).ok).toBe(true);
    });

    test("an instance that starts when the log has been trimmed knows it, too", async () => {
      const { backend, store, login } = context();
      const until = await store.revokeAll(undefined);
      await backend.advance(2 * MARKER_LIFE);
      // Expired entries of a partition's log are removed when a session of that partition ends. So one session of each partition is ended.
      for (const user of subjectsOfPartitions()) await store.end((await login(user)).sid, "logout");
      const other = await backend.open();
      expect((await other.revocations(undefined)).revokedUntil).toBe(until);
    });

    test("every listening instance gets a hint, and finds it in the log after its cursor", async () => {
      const { backend, store } = context();
      const other = await backend.open();
      const there = hints(other);
      await there.received(() => true);
      const { cursor } = await other.revocations(undefined);
      await backend.advance(1);
      const until = await store.revokeAll(undefined);
      await there.received((hint) => hint.length === 0);
      expect((await other.revocations(cursor)).revokedUntil).toBe(until);
      there.stop();
    });
  });
}

/** Returns subjects, one for each partition of the store. */
function subjectsOfPartitions(): Iterable<string> {
  const subjects = new Map<number, string>();
  while (subjects.size < 256) {
    const user = subject();
    subjects.set(hash("sha256", user, "buffer")[0] ?? 0, user);
  }
  return subjects.values();
}
