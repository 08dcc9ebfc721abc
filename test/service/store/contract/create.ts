/** Tests that every store has to pass: creating a session, alone or in place of another. */
import { describe, expect, test } from "vitest";
import { firstState } from "../../../../src/service/session/rotation/rotation.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import { CAP, type Context } from "../../../support/store/context.ts";
import {
  ABSOLUTE,
  elsewhere,
  expectCreated,
  fullSession,
  IDLE,
  neighbour,
  newSession,
  nonce,
  SECOND,
  sidOf,
  sidsOf,
  subject,
} from "../../../support/store/sessions.ts";

export function createContract(context: () => Context): void {
  describe("create", () => {
    test("a session is there as it was created, with its expiries", async () => {
      const { backend, store } = context();
      const session = newSession(subject());
      const first = nonce();
      const created = {
        ...session,
        createdAt: backend.now(),
        lastRefreshedAt: backend.now(),
        idleExpiresAt: backend.now() + IDLE,
        absoluteExpiresAt: backend.now() + ABSOLUTE,
      };
      expect(await store.create(session, first, { cap: CAP })).toEqual({
        ok: true,
        isNew: true,
        session: created,
        rotation: firstState(first),
        evicted: [],
        replaced: undefined,
        newDevice: false,
      });
      expect(await store.find(session.sid)).toEqual({
        ok: true,
        session: created,
        rotation: firstState(first),
        now: backend.now(),
      });
    });

    test("the idle expiry is never later than the absolute one", async () => {
      const { store } = context();
      const session = newSession(subject(), { idleTimeoutMs: 2 * ABSOLUTE });
      const { session: created } = expectCreated(await store.create(session, nonce(), { cap: CAP }));
      expect(created.idleExpiresAt).toBe(created.absoluteExpiresAt);
    });

    test("a call that is repeated changes nothing of the session, which may be in use by then", async () => {
      const { store, refresh } = context();
      const session = newSession(subject());
      const first = { generation: 1, nonce: nonce(), issuedAt: storeMs(0) };
      await store.create(session, first.nonce, { cap: CAP });
      const { session: used } = await refresh(session.sid, first);
      const found = await store.find(session.sid);
      expect(await store.create(session, first.nonce, { cap: CAP })).toMatchObject({ session: used, evicted: [] });
      expect(await store.find(session.sid)).toEqual(found);
    });

    test("an id may be used again in the moment in which its session has expired", async () => {
      const { backend, store } = context();
      const session = newSession(subject(), { idleTimeoutMs: SECOND });
      await store.create(session, nonce(), { cap: CAP });
      await backend.advance(SECOND);
      expect(await store.create(session, nonce(), { cap: CAP })).toMatchObject({
        session: { createdAt: backend.now() },
      });
      expect(await store.find(session.sid)).toMatchObject({ ok: true });
    });

    test("every field that a session can have comes back as it went in", async () => {
      const { store } = context();
      const session = fullSession(subject());
      await store.create(session, nonce(), { cap: CAP });
      expect(await store.find(session.sid)).toMatchObject({ ok: true, session });
      expect((await store.list(session.subject, 10, undefined)).sessions).toMatchObject([session]);
    });

    test("text of any script and size comes back as it went in", async () => {
      const { store } = context();
      const user = subject("ユーザー\u0000\n{a7}");
      const session = newSession(user, {
        clientId: "ü".repeat(200),
        audience: "",
        claims: JSON.stringify({ text: '𝄞"\\'.repeat(1000) }),
        client: { userAgent: "x".repeat(1024), ipAddress: "2001:db8::1", displayName: "é".repeat(127) },
      });
      await store.create(session, nonce(), { cap: CAP });
      const found = await store.find(session.sid);
      expect(found).toMatchObject({ ok: true, session });
      expect((await store.list(user, 10, undefined)).sessions).toMatchObject([session]);
    });

    test("several audiences come back as they went in", async () => {
      const { store } = context();
      const user = subject();
      const session = newSession(user, { audience: ["https://a.example", "urn:b, c", "d"] });
      await store.create(session, nonce(), { cap: CAP });
      expect(await store.find(session.sid)).toMatchObject({ ok: true, session });
      expect((await store.list(user, 10, undefined)).sessions).toMatchObject([session]);
    });

    test("facts come back as they went in, also beside an authentication and claims, and stay", async () => {
      const { backend, store } = context();
      const user = subject();
      const authentication = { time: wallMs(1_700_000_000_000), methods: ["pwd"], contextClass: "gold" };
      const claims = '{"role":"editor"}';
      const sessions = [
        newSession(user, { persistent: false }),
        newSession(user, { persistent: false, claims }),
        newSession(user, { persistent: false, claims, authentication }),
        newSession(user, { claims, authentication }),
      ];
      for (const session of sessions) {
        const first = nonce();
        await store.create(session, first, { cap: CAP });
        const found = await store.find(session.sid);
        expect(found).toMatchObject({ ok: true, session });
        expect(found.ok && "persistent" in found.session).toBe("persistent" in session);
        const later = { ...authentication, time: wallMs(authentication.time + 1), methods: ["pwd", "otp"] };
        expect(await store.elevate(session.sid, later)).toMatchObject({ ok: true });
        expect(await store.find(session.sid)).toMatchObject({ session: { ...session, authentication: later } });
        const rotated = await store.rotate(
          session.sid,
          { generation: 1, nonce: first, issuedAt: storeMs(backend.now()) },
          nonce(),
        );
        expect(rotated).toMatchObject({ ok: true, session: { ...session, authentication: later } });
      }
    });

    test("run twice, it makes one session", async () => {
      const { store } = context();
      const user = subject();
      const session = newSession(user);
      const first = nonce();
      const once = expectCreated(await store.create(session, first, { cap: 1 }));
      expect(await store.create(session, first, { cap: 1 })).toEqual(once);
      expect((await store.list(user, 10, undefined)).sessions).toHaveLength(1);
    });

    test("beyond the cap the oldest sessions end, with the reason", async () => {
      const { store, login, logged } = context();
      const user = subject();
      const [a, b, c] = [await login(user), await login(user), await login(user)];
      const d = newSession(user);
      expect(sidsOf(expectCreated(await store.create(d, nonce(), { cap: 2 })).evicted)).toEqual([a.sid, b.sid]);
      const { sessions } = await store.list(user, 10, undefined);
      expect(new Set(sessions.map(({ sid }) => sid))).toEqual(new Set([c.sid, d.sid]));
      expect(await store.find(a.sid)).toEqual({ ok: false, reason: "revoked" });
      expect(await logged(b.sid)).toEqual(["session_limit"]);
    });

    test("expired sessions do not count towards the cap", async () => {
      const { backend, store, login } = context();
      const user = subject();
      await login(user, { idleTimeoutMs: SECOND });
      const kept = await login(user);
      await login(user, { idleTimeoutMs: SECOND });
      await backend.advance(SECOND);
      expect(expectCreated(await store.create(newSession(user), nonce(), { cap: 2 })).evicted).toEqual([]);
      expect((await store.find(kept.sid)).ok).toBe(true);
    });

    test("with a cap of one, a login ends the session before it", async () => {
      const { store, login } = context();
      const user = subject();
      const before = await login(user);
      expect(sidsOf(expectCreated(await store.create(newSession(user), nonce(), { cap: 1 })).evicted)).toEqual([
        before.sid,
      ]);
    });
  });

  describe("create in place of another session", () => {
    test("the other one ends, with the reason", async () => {
      const { store, login, logged } = context();
      const user = subject();
      const [old, other] = [await login(user), await login(user)];
      const wanted = newSession(user);
      expect(await store.create(wanted, nonce(), { cap: CAP, replaces: old.sid })).toMatchObject({
        replaced: { sid: old.sid },
        evicted: [],
      });
      expect(await store.find(old.sid)).toEqual({ ok: false, reason: "revoked" });
      expect(await logged(old.sid)).toEqual(["replaced"]);
      const { sessions } = await store.list(user, 10, undefined);
      expect(new Set(sessions.map(({ sid }) => sid))).toEqual(new Set([wanted.sid, other.sid]));
    });

    test("it leaves its place under the cap to the new one", async () => {
      const { store, login } = context();
      const user = subject();
      const [kept, old] = [await login(user), await login(user)];
      const result = expectCreated(await store.create(newSession(user), nonce(), { cap: 2, replaces: old.sid }));
      expect(result).toMatchObject({ replaced: { sid: old.sid }, evicted: [] });
      expect((await store.find(kept.sid)).ok).toBe(true);
    });

    test.each([
      ["of another subject in the same partition", neighbour],
      ["of another partition", elsewhere],
    ])("the other one may be %s", async (_, other) => {
      const { store, login, logged } = context();
      const user = subject();
      const old = await login(other(user));
      const wanted = newSession(user);
      expect(await store.create(wanted, nonce(), { cap: CAP, replaces: old.sid })).toMatchObject({
        replaced: { sid: old.sid },
      });
      expect(await store.find(old.sid)).toEqual({ ok: false, reason: "revoked" });
      expect(await logged(old.sid)).toEqual(["replaced"]);
      expect((await store.list(other(user), 10, undefined)).sessions).toEqual([]);
      expect((await store.find(wanted.sid)).ok).toBe(true);
    });

    test("one that is not live is replaced by nothing", async () => {
      const { store, login, logged } = context();
      const user = subject();
      const old = await login(user);
      await store.end(old.sid, "logout");
      expect(await store.create(newSession(user), nonce(), { cap: CAP, replaces: old.sid })).toMatchObject({
        replaced: undefined,
      });
      expect(await logged(old.sid)).toEqual(["logout"]);
      expect(await store.create(newSession(user), nonce(), { cap: CAP, replaces: sidOf(user) })).toMatchObject({
        replaced: undefined,
      });
    });
  });
}
