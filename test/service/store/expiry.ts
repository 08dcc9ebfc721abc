/** Every session that is past its lifetimes is ended exactly once, whichever instance finds it. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NewSession, SessionId } from "../../../src/service/session/model.ts";
import type { ExpiredSession, SessionStore } from "../../../src/service/session/ports.ts";
import { storeMs } from "../../../src/service/session/time.ts";
import type { Backend } from "../../support/store/backends.ts";
import { MARKED, newSession, nonce, SECOND, subject } from "../../support/store/sessions.ts";

/** After this time, another instance may take over a partition from the instance that held its lease. */
const TAKEOVER = 31 * SECOND;
const SHORT = 10 * SECOND;

export function expiryContract(name: string, start: () => Promise<Backend>): void {
  describe(`on the ${name} store`, () => {
    let backend: Backend;
    let store: SessionStore;
    let other: SessionStore;
    beforeAll(async () => {
      backend = await start();
      [store, other] = [await backend.open(), await backend.open()];
    });
    afterAll(() => backend.stop());

    async function login(user = subject(), more: Partial<NewSession> = { idleTimeoutMs: SHORT }) {
      const [session, first] = [newSession(user, more), nonce()];
      await store.create(session, first, { cap: 1_000, origin: {} });
      return { sid: session.sid, user, first: { generation: 1, nonce: first, issuedAt: storeMs(0) } };
    }

    /** Returns all sessions that an instance ends in one pass. */
    async function expireAll(by = store): Promise<ExpiredSession[]> {
      const found: ExpiredSession[] = [];
      for (let isDone = false; !isDone; ) {
        const step = await by.expire();
        found.push(...step.ended);
        ({ isDone } = step);
      }
      return found;
    }

    async function reasonsOf(sid: SessionId): Promise<string[]> {
      const { revocations } = await store.revocations(undefined);
      return revocations.filter((entry) => entry.sid === sid).map(({ reason }) => reason);
    }

    async function dueOf(sid: SessionId) {
      const parts = await store.dueRecords();
      return parts.flatMap(({ records }) => records).filter(({ event }) => event.sid === sid && event.type === "ended");
    }

    test("a session ends with its idle timeout, and with its absolute lifetime, once and with a due record", async () => {
      const idle = await login();
      const absolute = await login(subject(), { absoluteLifetimeMs: SHORT });
      await backend.advance(SHORT - 1);
      expect(await expireAll()).toEqual([]);
      await backend.advance(1);
      const expected = [idle, absolute].map(({ sid, user }) => ({ sid, subject: user }));
      const ended = await expireAll();
      expect(ended).toHaveLength(2);
      expect(ended).toEqual(expect.arrayContaining(expected));
      expect(await expireAll()).toEqual([]);
      for (const { sid, user } of [idle, absolute]) {
        expect(await reasonsOf(sid)).toEqual(["expired"]);
        expect(await dueOf(sid)).toMatchObject([{ key: sid, event: { subject: user, reason: "expired" } }]);
        expect(await store.find(sid)).toEqual({ ok: false, reason: "unknown" });
        expect((await store.list(user, 10, undefined)).sessions).toEqual([]);
      }
    });

    test("a session that is refreshed lives on", async () => {
      const { sid, first } = await login();
      await expireAll();
      await backend.advance(SHORT / 2);
      expect((await store.rotate(sid, first, nonce())).ok).toBe(true);
      await backend.advance(SHORT - 1);
      expect(await expireAll()).toEqual([]);
      await backend.advance(1);
      expect((await expireAll()).map((ended) => ended.sid)).toEqual([sid]);
    });

    test("those that are created after a look are found as well, whatever their timeouts are", async () => {
      const user = subject();
      const long = await login(user, { idleTimeoutMs: 3 * SHORT });
      await expireAll();
      const short = await login(user);
      await backend.advance(SHORT);
      expect((await expireAll()).map(({ sid }) => sid)).toEqual([short.sid]);
      await backend.advance(2 * SHORT);
      expect((await expireAll()).map(({ sid }) => sid)).toEqual([long.sid]);
    });

    test("many of one subject end in several steps, among others that live", async () => {
      const user = subject();
      const ended: SessionId[] = [];
      for (let count = 0; count < 300; count++) {
        const { sid } = await login(user, { idleTimeoutMs: count % 3 === 0 ? 20 * SHORT : SHORT });
        if (count % 3 !== 0) ended.push(sid);
      }
      await expireAll();
      await backend.advance(SHORT);
      const found = await expireAll();
      expect(found.map(({ sid }) => sid).toSorted()).toEqual(ended.toSorted());
      expect((await store.list(user, 1_000, undefined)).sessions).toHaveLength(100);
      await backend.advance(20 * SHORT);
      expect(await expireAll()).toHaveLength(100);
    });

    test("two instances that look at the same time end each session once", async () => {
      await backend.advance(TAKEOVER);
      const sids: SessionId[] = [];
      for (let count = 0; count < 100; count++) sids.push((await login()).sid);
      await backend.advance(SHORT);
      const found = (await Promise.all([expireAll(store), expireAll(other)])).flat();
      expect(found.map(({ sid }) => sid).toSorted()).toEqual(sids.toSorted());
    });

    // The embedded store has no leases, because each of its steps is a transaction.
    if (name !== "embedded") {
      test("while an instance holds the partitions, another one looks at none", async () => {
        await backend.advance(TAKEOVER);
        await expireAll(store);
        const { sid } = await login();
        await backend.advance(SHORT);
        expect(await expireAll(other)).toEqual([]);
        expect((await expireAll(store)).map((ended) => ended.sid)).toEqual([sid]);
      });
    }

    test("after an instance that is no more, another one takes over", async () => {
      await expireAll(store);
      const { sid } = await login();
      await backend.advance(TAKEOVER);
      expect((await expireAll(other)).map((ended) => ended.sid)).toEqual([sid]);
      await backend.advance(TAKEOVER);
    });

    test("a logout after the expiry is what it was before: there is no session, and it is marked", async () => {
      const { sid } = await login();
      await backend.advance(SHORT);
      await expireAll();
      expect(await store.end(sid, "logout")).toEqual(MARKED);
      expect(await reasonsOf(sid)).toEqual(["expired", "logout"]);
    });

    test("a session that ended otherwise does not expire", async () => {
      const user = subject();
      const [loggedOut, revoked] = [await login(user), await login(user)];
      await store.end(loggedOut.sid, "logout", {});
      await store.revokeAll(undefined, {});
      await backend.advance(SHORT);
      expect(await expireAll()).toEqual([]);
      expect(await reasonsOf(revoked.sid)).toEqual([]);
    });

    test("sessions that expire while their subject's end is under way end once, by either", async () => {
      const user = subject();
      const sids: SessionId[] = [];
      for (let count = 0; count < 300; count++) sids.push((await login(user)).sid);
      await backend.beginEndAll(user, "revoked_subject", { origin: {} });
      await backend.endPart(user);
      await backend.advance(SHORT);
      await expireAll();
      // The first call was left half-way. This one ends the remaining sessions.
      await store.endAll(user, "revoked_subject", { origin: {} });
      await expireAll();
      const { revocations } = await store.revocations(undefined);
      const logged = revocations.filter(({ sid }) => sids.includes(sid));
      expect(logged.map(({ sid }) => sid).toSorted()).toEqual(sids.toSorted());
      expect(new Set(logged.map(({ reason }) => reason))).toEqual(new Set(["revoked_subject", "expired"]));
    });
  });
}
