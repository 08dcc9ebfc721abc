/** Tests that every store has to pass: which sessions end, and which are refused, if a subject has more than it may have. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SessionLimit } from "../../../../src/service/session/admin/limit.ts";
import type { NewSession, SessionId } from "../../../../src/service/session/model.ts";
import type { TokenFields } from "../../../../src/service/session/rotation/rotation.ts";
import { CAP, type Context, type Login } from "../../../support/store/context.ts";
import {
  elsewhere,
  endedSessions,
  expectCreated,
  neighbour,
  newSession,
  nonce,
  REUSE_INTERVAL,
  SECOND,
  sidsOf,
  subject,
} from "../../../support/store/sessions.ts";

const ENDING = "end_least_recently_used";

export function limitsContract(context: () => Context): void {
  const within = (user: string, limit: SessionLimit, more: Partial<NewSession> = {}, replaces?: SessionId) =>
    context().store.create(newSession(user, more), nonce(), { cap: CAP, limit, replaces });
  const liveOf = async (user: string, limit = 100) => {
    const { sessions } = await context().store.list(user, limit, undefined);
    return new Set(sessions.map(({ sid }) => sid));
  };
  /** Creates sessions, a millisecond apart, and returns their ids. */
  const logins = async (user: string, ...more: Partial<NewSession>[]) => {
    const sids: SessionId[] = [];
    for (const each of more) {
      await context().backend.advance(1);
      sids.push((await context().login(user, each)).sid);
    }
    return sids as [SessionId, SessionId, SessionId, ...SessionId[]];
  };
  const times = (count: number, more: Partial<NewSession> = {}) => Array.from({ length: count }, () => more);

  describe("a cap", () => {
    test("ends the session that was used longest ago, not the oldest", async () => {
      const { backend, store, login, refresh } = context();
      const user = subject();
      const [a, b, c] = [await login(user), await login(user), await login(user)];
      await backend.advance(SECOND);
      await refresh(a.sid, a.first);
      await refresh(c.sid, c.first);
      expect(sidsOf(expectCreated(await store.create(newSession(user), nonce(), { cap: 3 })).evicted)).toEqual([b.sid]);
      await backend.advance(SECOND);
      await login(user);
      expect(expectCreated(await store.create(newSession(user), nonce(), { cap: 2 })).evicted.slice(0, 2)).toEqual(
        endedSessions(a.sid, c.sid),
      );
    });

    test.each(["cap", "limit"])("counts a refresh that gets the same token again as use (%s)", async (by) => {
      const { backend, store, login, refresh } = context();
      for (const more of [{}, { actor: { subject: "support" } }]) {
        if (by === "limit" && "actor" in more) continue; // No limit counts such a session.
        const user = subject();
        const a = await login(user, more);
        await refresh(a.sid, a.first);
        await backend.advance(SECOND);
        const b = await login(user, more);
        await backend.advance(SECOND);
        expect(await refresh(a.sid, a.first)).toMatchObject({ outcome: "repeat" });
        await backend.advance(SECOND);
        const limit = { scope: "subject", maxSessions: 2, whenExceeded: ENDING } as const;
        if (by === "limit") {
          expect(await within(user, { ...limit, maxSessions: 1, whenExceeded: "refuse" })).toMatchObject({
            live: [{ sid: b.sid }, { sid: a.sid }],
          });
        }
        const options = by === "cap" ? { cap: 2 } : { cap: CAP, limit };
        const { evicted } = expectCreated(await store.create(newSession(user, more), nonce(), options));
        expect(sidsOf(evicted)).toEqual([b.sid]);
      }
    });

    test("compares the 64 oldest", async () => {
      const { backend, store, login, refresh } = context();
      const user = subject();
      const created: Login[] = [];
      for (let at = 0; at < 66; at++) {
        await backend.advance(1);
        created.push(await login(user));
      }
      await backend.advance(SECOND);
      for (const { sid, first } of created.slice(0, 64)) {
        await refresh(sid, first);
        await backend.advance(1);
      }
      // The two that were never refreshed are not among the 64 oldest, until the first has ended.
      const { evicted } = expectCreated(await store.create(newSession(user), nonce(), { cap: 63 }));
      expect(sidsOf(evicted)).toEqual([0, 64, 65, 1].map((at) => created[at]?.sid));
    });
  });

  describe("a limit", () => {
    test("counts the sessions of the subject, of one application, or of one kind of client", async () => {
      const user = subject();
      const [web, tv, unknown, other] = await logins(
        user,
        { clientId: "web", kind: "browser" },
        { clientId: "tv", kind: "tv" },
        { clientId: "tv" },
        { clientId: "web", kind: "mobile" },
      );
      const of = (scope: SessionLimit["scope"]) => ({ scope, maxSessions: 1, whenExceeded: ENDING }) as const;
      const ended = async (scope: SessionLimit["scope"], more: Partial<NewSession>) =>
        within(user, of(scope), { ...more, idleTimeoutMs: 1 });
      expect(await ended("client_id", { clientId: "cli", kind: "browser" })).toMatchObject({ evicted: [] });
      await context().backend.advance(1);
      expect(await ended("client_kind", { clientId: "web", kind: "agent" })).toMatchObject({ evicted: [] });
      await context().backend.advance(1);
      expect(await ended("client_kind", { clientId: "web" })).toMatchObject({ evicted: endedSessions(unknown) });
      await context().backend.advance(1);
      expect(await ended("client_kind", { clientId: "web", kind: "tv" })).toMatchObject({ evicted: endedSessions(tv) });
      await context().backend.advance(1);
      expect(await ended("client_id", { clientId: "web", kind: "tv" })).toMatchObject({
        evicted: [{ sid: web }, { sid: other }],
      });
      await logins(user, {}, {});
      await within(user, of("subject"), { clientId: "new" });
      expect(await liveOf(user)).toHaveProperty("size", 1);
    });

    test("does not count the sessions that somebody uses in place of the subject", async () => {
      const user = subject();
      const [acting, own] = await logins(user, { actor: { subject: "support" } }, {});
      const limit = { scope: "subject", maxSessions: 2, whenExceeded: ENDING } as const;
      await context().backend.advance(1);
      expect(await within(user, limit)).toMatchObject({ evicted: [] });
      expect(await within(user, limit)).toMatchObject({ evicted: endedSessions(own) });
      expect(await liveOf(user)).toContain(acting);
    });

    test("compares client ids as a whole, and reads kinds beside whatever else a session has", async () => {
      const user = subject();
      const authentication = { time: 1_700_000_000_000, methods: ["pwd"], contextClass: "" } as never;
      const long = `${"ü".repeat(120)}"kind":"tv"`;
      const [first] = await logins(
        user,
        { clientId: long, kind: "tv", authentication, claims: '{"kind":"browser"}' },
        { clientId: `${long}x`, claims: '{"kind":"tv"}', persistent: false },
        { clientId: long.slice(1), kind: "browser", dpopJkt: "x".repeat(42).concat("A"), transport: "token" },
      );
      const limit = { scope: "client_kind", maxSessions: 1, whenExceeded: ENDING } as const;
      const more = { idleTimeoutMs: 1, claims: '{"kind":"browser"}' };
      expect(await within(user, limit, { ...more, kind: "tv", persistent: false })).toMatchObject({
        evicted: endedSessions(first),
      });
      await context().backend.advance(1);
      const [again] = await logins(user, { clientId: long });
      const ofApp = { ...limit, scope: "client_id" } as const;
      expect(await within(user, ofApp, { ...more, clientId: long })).toMatchObject({ evicted: endedSessions(again) });
    });

    test("may end the oldest, whatever was used last", async () => {
      const { backend, login, refresh } = context();
      const user = subject();
      const [a, b] = [await login(user), await login(user)];
      await backend.advance(SECOND);
      await refresh(a.sid, a.first);
      const limit = { scope: "subject", maxSessions: 2, whenExceeded: "end_oldest" } as const;
      expect(await within(user, limit)).toMatchObject({ ok: true, evicted: endedSessions(a.sid) });
      expect(await liveOf(user)).toContain(b.sid);
    });

    test("holds beside the cap", async () => {
      const { store } = context();
      const user = subject();
      const [tv, a, b] = await logins(user, { kind: "tv" }, { kind: "browser" }, { kind: "browser" });
      const limit = { scope: "client_kind", maxSessions: 1, whenExceeded: ENDING } as const;
      const wanted = newSession(user, { kind: "tv" });
      expect(await store.create(wanted, nonce(), { cap: 2, limit })).toMatchObject({ evicted: endedSessions(tv, a) });
      expect(await liveOf(user)).toEqual(new Set([b, wanted.sid]));
    });

    test("that was lowered ends all beyond it", async () => {
      const user = subject();
      const sids = await logins(user, ...times(40, { kind: "tv" }), ...times(3));
      const limit = { scope: "client_kind", maxSessions: 3, whenExceeded: ENDING } as const;
      expect(await within(user, limit, { kind: "tv" })).toMatchObject({ evicted: endedSessions(...sids.slice(0, 38)) });
      expect(await liveOf(user)).toHaveProperty("size", 6);
    });

    test("counts no session that has expired or ended", async () => {
      const { backend, store } = context();
      const user = subject();
      const limit = { scope: "subject", maxSessions: 2, whenExceeded: "refuse" } as const;
      const [a, , c] = await logins(user, {}, { idleTimeoutMs: SECOND }, {});
      await backend.advance(SECOND);
      expect(await within(user, limit)).toMatchObject({ ok: false });
      await store.end(a, "logout");
      expect(await within(user, limit)).toMatchObject({ ok: true, evicted: [] });
      await store.revokeAll(undefined);
      expect(await within(user, limit)).toMatchObject({ ok: true });
      expect(await liveOf(user)).not.toContain(c);
    });

    test("run twice, makes one session, also when there is no more room", async () => {
      const { store } = context();
      const user = subject();
      for (const whenExceeded of ["refuse", ENDING] as const) {
        const limit = { scope: "client_id", maxSessions: 1, whenExceeded } as const;
        const [session, first] = [newSession(user, { clientId: whenExceeded }), nonce()];
        const once = await store.create(session, first, { cap: CAP, limit });
        expect(await store.create(session, first, { cap: CAP, limit })).toEqual(once);
        expect(once).toMatchObject({ ok: true, session });
      }
    });
  });

  describe("a limit that refuses", () => {
    const limit = { scope: "client_id", maxSessions: 2, whenExceeded: "refuse" } as const;

    test("lists what is live, the least recently used first, and changes nothing", async () => {
      const { store, backend, refresh, login } = context();
      const user = subject();
      const [a, b] = [await login(user), await login(user, { kind: "cli" })];
      await login(user, { clientId: "other" });
      await backend.advance(SECOND);
      await refresh(a.sid, a.first);
      const before = await store.list(user, 10, undefined);
      const outcome = await within(user, limit);
      expect(outcome).toMatchObject({
        ok: false,
        reason: "refused",
        limit,
        live: [{ sid: b.sid, kind: "cli" }, { sid: a.sid }],
      });
      expect(await store.list(user, 10, undefined)).toEqual(before);
    });

    test("lists ten", async () => {
      const user = subject();
      const sids = await logins(user, ...times(12));
      const outcome = await within(user, { ...limit, maxSessions: 5 });
      expect(outcome.ok || outcome.reason === "ended" ? [] : outcome.live.map(({ sid }) => sid)).toEqual(
        sids.slice(0, 10),
      );
    });

    test.each([
      ["of the same partition", neighbour],
      ["of another partition", elsewhere],
    ])("does not end the session of another subject %s that was to be replaced", async (_, other) => {
      const { store, login, logged } = context();
      const user = subject();
      const old = await login(other(user));
      const [first] = await logins(user, {}, {});
      expect(await within(user, limit, {}, old.sid)).toMatchObject({ ok: false });
      expect((await store.find(old.sid)).ok).toBe(true);
      await store.end(first, "logout");
      expect(await within(user, limit, {}, old.sid)).toMatchObject({ ok: true, replaced: { sid: old.sid } });
      expect(await logged(old.sid)).toEqual(["replaced"]);
    });
  });

  describe("in place of another session", () => {
    test.each(["refuse", ENDING, "end_oldest"] as const)("the limit does not matter (%s)", async (whenExceeded) => {
      const user = subject();
      const limit = { scope: "client_kind", maxSessions: 2, whenExceeded } as const;
      const [a, b, c] = await logins(user, ...times(3, { kind: "browser" }));
      const outcome = await within(user, limit, { kind: "browser" }, b);
      expect(outcome).toMatchObject({ ok: true, replaced: { sid: b }, evicted: [] });
      const live = await liveOf(user);
      expect([a, b, c].map((sid) => live.has(sid))).toEqual([true, false, true]);
    });

    test("that the limit does not count, it holds", async () => {
      const { store } = context();
      const user = subject();
      const limit = { scope: "client_kind", maxSessions: 1, whenExceeded: "refuse" } as const;
      const [tv, browser] = await logins(user, { kind: "tv" }, { kind: "browser" });
      expect(await within(user, limit, { kind: "tv" }, browser)).toMatchObject({ ok: false });
      expect((await store.find(browser)).ok).toBe(true);
      expect(await within(user, { ...limit, whenExceeded: ENDING }, { kind: "tv" }, browser)).toMatchObject({
        replaced: { sid: browser },
        evicted: endedSessions(tv),
      });
    });

    test("that is not live, it holds", async () => {
      const { store } = context();
      const user = subject();
      const [a, gone] = await logins(user, {}, {});
      await store.end(gone, "logout");
      const limit = { scope: "subject", maxSessions: 1, whenExceeded: "refuse" } as const;
      expect(await within(user, limit, {}, gone)).toMatchObject({ ok: false, live: [{ sid: a }] });
    });
  });

  describe("of a subject with many sessions", () => {
    const MANY = 300;
    /** Every tenth session is of the application that is limited. */
    async function crowd(user: string): Promise<SessionId[]> {
      const { store, backend } = context();
      const sids: SessionId[] = [];
      for (let at = 0; at < MANY; at++) {
        const session = newSession(user, at % 10 === 5 ? { clientId: "app", kind: "agent" } : {});
        await store.create(session, nonce(), { cap: 1_000 });
        if (at % 10 === 5) sids.push(session.sid);
        if (at % 10 === 5) await backend.advance(1);
      }
      return sids;
    }
    const into = (user: string, limit: SessionLimit, more: Partial<NewSession> = {}, replaces?: SessionId) =>
      context().store.create(newSession(user, more), nonce(), { cap: 1_000, limit, replaces });

    test("the limit counts none that a logout has ended and not deleted yet", async () => {
      const user = subject();
      await crowd(user);
      await context().backend.beginEndAll(user, "revoked_subject");
      const limit = { scope: "subject", maxSessions: 1, whenExceeded: "refuse" } as const;
      expect(await into(user, limit)).toMatchObject({ ok: true, evicted: [] });
    });

    test.each(["client_id", "client_kind"] as const)("the limit counts by %s, wherever they are", async (scope) => {
      const user = subject();
      const sids = await crowd(user);
      const more = { clientId: "app", kind: "agent" } as const;
      const limit = { scope, maxSessions: 30, whenExceeded: "refuse" } as const;
      const refused = await into(user, limit, more);
      expect(refused.ok || refused.reason === "ended" ? [] : refused.live.map(({ sid }) => sid)).toEqual(
        sids.slice(0, 10),
      );
      expect(await into(user, limit, more, sids[20])).toMatchObject({
        ok: true,
        evicted: [],
        replaced: { sid: sids[20] },
      });
      const ended = await into(user, { ...limit, whenExceeded: ENDING }, more);
      expect(ended).toMatchObject({ ok: true, evicted: [{ sid: sids[0] }] });
      const lowered = await into(user, { ...limit, maxSessions: 3, whenExceeded: ENDING }, more);
      expect(lowered).toMatchObject({ ok: true, evicted: endedSessions(...sids.slice(1, 20), ...sids.slice(21)) });
      expect(await into(user, { ...limit, maxSessions: 4 }, more)).toMatchObject({ ok: true });
      expect(await into(user, { ...limit, maxSessions: 4 }, more)).toMatchObject({ ok: false });
      expect(await into(user, limit, { clientId: "none", kind: "tv" })).toMatchObject({ ok: true });
    });

    test.each([ENDING, "end_oldest"] as const)(
      "each that ends is the right one of the oldest (%s)",
      async (whenExceeded) => {
        const { store, backend } = context();
        const user = subject();
        const created: Login[] = [];
        for (let at = 0; at < 320; at++) {
          await backend.advance(1);
          const [session, first] = [newSession(user, at % 2 === 0 ? { kind: "tv" } : {}), nonce()];
          await store.create(session, first, { cap: 1_000 });
          created.push({ sid: session.sid, first: { generation: 1, nonce: first, issuedAt: backend.now() } });
        }
        const used = new Map(created.map(({ sid }, at) => [sid, at]));
        for (const at of [150, 298, ...Array.from({ length: 90 }, (_, k) => (k * 37) % 200)]) {
          const { sid, first } = created[at] as Login;
          await backend.advance(1);
          if ((await store.rotate(sid, first, nonce())).ok) used.set(sid, 1_000 + backend.now());
        }
        const left = created.filter((_, at) => at % 2 === 0).map(({ sid }) => sid);
        const ended: SessionId[] = [];
        while (left.length >= 10) {
          const window = left.slice(0, whenExceeded === ENDING ? 64 : 1);
          const least = window.toSorted((a, b) => (used.get(a) ?? 0) - (used.get(b) ?? 0))[0] as SessionId;
          ended.push(...left.splice(left.indexOf(least), 1));
        }
        const limit = { scope: "client_kind", maxSessions: 10, whenExceeded } as const;
        expect(await into(user, limit, { kind: "tv" })).toMatchObject({ ok: true, evicted: endedSessions(...ended) });
      },
    );

    test("one that is replaced leaves its place to the new one, also if the cap ends many", async () => {
      const { store } = context();
      const user = subject();
      await crowd(user);
      const limit = { scope: "client_id", maxSessions: 3, whenExceeded: "refuse" } as const;
      const { sessions } = await store.list(user, 1, undefined, { clientId: "app" });
      const outcome = await store.create(newSession(user, { clientId: "app" }), nonce(), {
        cap: 40,
        limit,
        replaces: sessions[0]?.sid,
      });
      expect(outcome).toMatchObject({ ok: true, replaced: { sid: sessions[0]?.sid } });
    });

    test("a limit that was lowered far ends all beyond it, and a refusal ends none", async () => {
      const user = subject();
      await crowd(user);
      const limit = { scope: "subject", maxSessions: 3, whenExceeded: "refuse" } as const;
      expect(await into(user, limit)).toMatchObject({ ok: false });
      expect(await liveOf(user, 400)).toHaveProperty("size", MANY);
      const outcome = await into(user, { ...limit, whenExceeded: ENDING });
      expect(outcome.ok && outcome.evicted).toHaveLength(MANY - 2);
      expect(await liveOf(user)).toHaveProperty("size", 3);
    });
  });

  test.each(["refuse", ENDING] as const)(
    "of many logins at once, no more than the limit live (%s)",
    async (whenExceeded) => {
      const { backend } = context();
      const stores = [context().store, await backend.open()];
      const user = subject();
      const limit = { scope: "client_kind", maxSessions: 3, whenExceeded } as const;
      const outcomes = await Promise.all(
        times(30).map((_, at) =>
          (stores[at % 2] ?? context().store).create(newSession(user, { kind: "cli" }), nonce(), { cap: CAP, limit }),
        ),
      );
      expect(outcomes.filter(({ ok }) => ok)).toHaveLength(whenExceeded === "refuse" ? 3 : 30);
      expect(await liveOf(user)).toHaveProperty("size", 3);
    },
  );

  test("a device that was used a moment ago is never put out while one that was not lives", async () => {
    const { backend, store } = context();
    const action = fc.oneof(
      {
        weight: 1,
        arbitrary: fc.record({ login: fc.integer({ min: 1, max: 6 }), by: fc.constantFrom("cap", "limit") }),
      },
      { weight: 3, arbitrary: fc.record({ refresh: fc.nat(5), pause: fc.constantFrom(0, REUSE_INTERVAL) }) },
    );
    const play = async (actions: readonly (typeof action extends fc.Arbitrary<infer T> ? T : never)[]) => {
      const user = subject();
      /** The live devices, the one that was used last at the end. */
      const devices: { readonly sid: SessionId; token: TokenFields }[] = [];
      for (const step of actions) {
        await backend.advance(1 + ("refresh" in step ? step.pause : 0));
        if ("refresh" in step) {
          const [device] = devices.splice(step.refresh % Math.max(1, devices.length), 1);
          if (device === undefined) continue;
          device.token = (await context().refresh(device.sid, device.token)).child;
          devices.push(device);
          continue;
        }
        const [session, first] = [newSession(user), nonce()];
        const limit = { scope: "subject", maxSessions: step.login, whenExceeded: ENDING } as const;
        const options = step.by === "cap" ? { cap: step.login } : { cap: CAP, limit };
        const { evicted } = expectCreated(await store.create(session, first, options));
        const put = devices.splice(0, Math.max(0, devices.length - step.login + 1));
        expect(evicted).toEqual(put.map(({ sid }) => ({ sid })));
        devices.push({ sid: session.sid, token: { generation: 1, nonce: first, issuedAt: backend.now() } });
      }
      expect(await liveOf(user)).toEqual(new Set(devices.map(({ sid }) => sid)));
    };
    await fc.assert(fc.asyncProperty(fc.array(action, { minLength: 10, maxLength: 40, size: "max" }), play), {
      numRuns: 25,
    });
  });
}
