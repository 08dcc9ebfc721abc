/** Tests that every store has to pass: creating a session with an id that leads to one session. */
import { describe, expect, test } from "vitest";
import type { SessionLimit } from "../../../../src/service/session/admin/limit.ts";
import type { NewSession } from "../../../../src/service/session/model.ts";
import type { SessionStore } from "../../../../src/service/session/ports.ts";
import { firstState } from "../../../../src/service/session/rotation/rotation.ts";
import { CAP, type Context } from "../../../support/store/context.ts";
import { ABSOLUTE, endedSessions, IDLE, newSession, nonce, SECOND, subject } from "../../../support/store/sessions.ts";

const RESERVED = 10 * ABSOLUTE;
const ENDED = { ok: false, reason: "ended" };

const createOnce = (store: SessionStore, session: NewSession, childNonce: string, cap = CAP, limit?: SessionLimit) =>
  store.create(session, childNonce, { cap, limit, reservedMs: RESERVED });

export function createOnceContract(context: () => Context): void {
  describe("create with a reservation", () => {
    test("creates a session as create does", async () => {
      const { store } = context();
      const session = newSession(subject(), { claims: '{"role":"editor"}' });
      const first = nonce();
      const created = await createOnce(store, session, first);
      expect(created).toMatchObject({ ok: true, isNew: true, session, rotation: firstState(first), evicted: [] });
      expect(await store.find(session.sid)).toMatchObject({ ok: true, session, rotation: firstState(first) });
    });

    test("a second call returns the session of the first one, with its first token, and ends no other", async () => {
      const { store, login } = context();
      const user = subject();
      const before = await login(user);
      const session = newSession(user);
      const first = nonce();
      await createOnce(store, session, first, 2);
      const again = await createOnce(store, { ...session, claims: '{"role":"admin"}' }, nonce(), 1);
      expect(again).toMatchObject({ ok: true, isNew: false, session, rotation: firstState(first), evicted: [] });
      expect(again).toMatchObject({ replaced: undefined, newDevice: false });
      expect(await store.find(before.sid)).toMatchObject({ ok: true });
    });

    test("of calls at the same time, from two instances, one creates the session", async () => {
      const { backend, store } = context();
      const other = await backend.open();
      const session = newSession(subject());
      const calls = [store, other, store, other].map((one) => createOnce(one, session, nonce()));
      const results = await Promise.all(calls);
      expect(results.filter((result) => result.ok && result.isNew)).toHaveLength(1);
      expect(new Set(results.map((result) => result.ok && result.rotation.childNonce)).size).toBe(1);
      await other.close();
    });

    test("the rotation state shows that the session is in use", async () => {
      const { store, refresh } = context();
      const session = newSession(subject());
      const first = nonce();
      const created = await createOnce(store, session, first);
      if (!created.ok) throw new Error("not created");
      const token = { generation: 1, nonce: first, issuedAt: created.session.createdAt };
      const { child } = await refresh(session.sid, token);
      const found = await createOnce(store, session, nonce());
      expect(found).toMatchObject({ ok: true, isNew: false, rotation: { generation: 1, childNonce: child.nonce } });
    });

    test("evicts the oldest sessions beyond the cap, also many", async () => {
      const { store, login, logged } = context();
      const user = subject();
      const old = [];
      for (let count = 0; count < 3; count++) old.push((await login(user)).sid);
      const created = await createOnce(store, newSession(user), nonce(), 1);
      expect(created).toMatchObject({ ok: true, isNew: true, evicted: endedSessions(...old) });
      expect(await logged(old[0] as never)).toEqual(["session_limit"]);
    });

    test.each(["logout", "all of the subject", "everyone", "idle"] as const)(
      "after the end of the session (%s) there is no other with its id",
      async (how) => {
        const { backend, store } = context();
        const session = newSession(subject());
        await createOnce(store, session, nonce());
        if (how === "logout") await store.end(session.sid, "logout");
        if (how === "all of the subject") await store.endAll(session.subject, "revoked_subject");
        if (how === "everyone") await store.revokeAll(undefined);
        if (how === "idle") await backend.advance(IDLE);
        expect(await createOnce(store, session, nonce())).toEqual(ENDED);
        await backend.advance(ABSOLUTE);
        while (!(await store.expire()).isDone);
        expect(await createOnce(store, session, nonce())).toEqual(ENDED);
        expect(await store.find(session.sid)).toMatchObject({ ok: false });
      },
    );

    test.each(["logout", "idle"])(
      "the reservation of an id ends, and is measured from the creation (%s)",
      async (how) => {
        const { backend, store } = context();
        const session = newSession(subject());
        await createOnce(store, session, nonce());
        if (how === "logout") await store.end(session.sid, "logout");
        await backend.advance(RESERVED - SECOND);
        expect(await createOnce(store, session, nonce())).toEqual(ENDED);
        await backend.advance(SECOND);
        expect(await createOnce(store, session, nonce())).toMatchObject({ ok: true, isNew: true, session });
        expect(await store.find(session.sid)).toMatchObject({ ok: true });
      },
    );

    test("a limit that refuses the session leaves no reservation", async () => {
      const { store, login } = context();
      const user = subject();
      const { sid } = await login(user);
      const session = newSession(user);
      const limit = { scope: "subject", maxSessions: 1, whenExceeded: "refuse" } as const;
      const refused = await createOnce(store, session, nonce(), CAP, limit);
      expect(refused).toMatchObject({ ok: false, reason: "refused", live: [{ sid }] });
      await store.end(sid, "logout");
      expect(await createOnce(store, session, nonce(), CAP, limit)).toMatchObject({ ok: true, isNew: true });
      expect(await createOnce(store, session, nonce(), CAP, limit)).toMatchObject({ ok: true, isNew: false });
    });

    test("a session that was created otherwise reserves nothing", async () => {
      const { store } = context();
      const session = newSession(subject());
      await store.create(session, nonce(), { cap: CAP });
      await store.end(session.sid, "logout");
      expect(await createOnce(store, session, nonce())).toMatchObject({ ok: true, isNew: true });
      // The mark of the former session with this id does not keep the new one from being ended.
      expect(await store.end(session.sid, "logout")).toMatchObject({ ok: true, wasLive: true });
      expect(await store.find(session.sid)).toEqual({ ok: false, reason: "revoked" });
    });
  });
}
