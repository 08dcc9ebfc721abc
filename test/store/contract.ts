/** What every store owes the domain, as a function of the backend. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { NewSession, Revocation, SessionId } from "../../src/session/model.ts";
import { InvalidCursor, type SessionStore, StoreUnavailable } from "../../src/session/ports.ts";
import { firstState, type PresentedToken } from "../../src/session/rotation.ts";
import { storeMs, wallMs } from "../../src/session/time.ts";
import type { Backend } from "./backends.ts";
import { deviceContract } from "./device-contract.ts";
import { eventsContract } from "./events.ts";
import { listAllContract } from "./list-all.ts";
import { manySessionsContract } from "./many-sessions.ts";
import {
  ABSOLUTE,
  ALREADY_ENDED,
  ENDED,
  endedAll,
  IDLE,
  MARKED,
  MARKER_LIFE,
  newSession,
  nonce,
  outcomeOf,
  REUSE_INTERVAL,
  SECOND,
  sidOf,
  subject,
} from "./sessions.ts";

const CAP = 100;

export function storeContract(name: string, start: () => Promise<Backend>): void {
  describe(`${name} store`, () => {
    let backend: Backend;
    let store: SessionStore;

    beforeAll(async () => {
      backend = await start();
      store = await backend.open();
    });
    afterAll(() => backend.stop());

    /** Creates a session and its first token. */
    async function login(user: string, more: Partial<NewSession> = {}) {
      const first = nonce();
      const session = newSession(user, more);
      await store.create(session, first, CAP);
      return {
        sid: session.sid,
        first: { generation: 1, nonce: first, issuedAt: storeMs(0) } satisfies PresentedToken,
      };
    }

    /** Presents a token that must be served. */
    async function refresh(sid: SessionId, token: PresentedToken) {
      const result = await store.rotate(sid, token, nonce());
      if (!result.ok) throw new Error(result.reason);
      return result;
    }

    async function logged(sid: SessionId): Promise<string[]> {
      const { revocations } = await store.revocations(undefined);
      return revocations.filter((entry) => entry.sid === sid).map((entry) => entry.reason);
    }

    describe("create", () => {
      test("a session is there as it was created, with its expiries", async () => {
        const session = newSession(subject());
        const first = nonce();
        const created = {
          ...session,
          createdAt: backend.now(),
          lastRefreshedAt: backend.now(),
          idleExpiresAt: backend.now() + IDLE,
          absoluteExpiresAt: backend.now() + ABSOLUTE,
        };
        expect(await store.create(session, first, CAP)).toEqual({ session: created, evicted: [], replaced: false });
        expect(await store.find(session.sid)).toEqual({
          ok: true,
          session: created,
          rotation: firstState(first),
          now: backend.now(),
        });
      });

      test("the idle expiry is never later than the absolute one", async () => {
        const session = newSession(subject(), { idleTimeoutMs: 2 * ABSOLUTE });
        const { session: created } = await store.create(session, nonce(), CAP);
        expect(created.idleExpiresAt).toBe(created.absoluteExpiresAt);
      });

      test("text of any script and size comes back as it went in", async () => {
        const user = subject("ユーザー\u0000\n{a7}");
        const session = newSession(user, {
          clientId: "ü".repeat(200),
          audience: "",
          claims: JSON.stringify({ text: '𝄞"\\'.repeat(1000) }),
          client: { userAgent: "x".repeat(1024), ipAddress: "2001:db8::1", displayName: "é".repeat(127) },
        });
        await store.create(session, nonce(), CAP);
        const found = await store.find(session.sid);
        expect(found).toMatchObject({ ok: true, session });
        expect((await store.list(user, 10, undefined)).sessions).toMatchObject([session]);
      });

      test("several audiences come back as they went in", async () => {
        const user = subject();
        const session = newSession(user, { audience: ["https://a.example", "urn:b, c", "d"] });
        await store.create(session, nonce(), CAP);
        expect(await store.find(session.sid)).toMatchObject({ ok: true, session });
        expect((await store.list(user, 10, undefined)).sessions).toMatchObject([session]);
      });

      test("run twice, it makes one session", async () => {
        const user = subject();
        const session = newSession(user);
        const first = nonce();
        const once = await store.create(session, first, 1);
        expect(await store.create(session, first, 1)).toEqual(once);
        expect((await store.list(user, 10, undefined)).sessions).toHaveLength(1);
      });

      test("beyond the cap the oldest sessions end, with the reason", async () => {
        const user = subject();
        const [a, b, c] = [await login(user), await login(user), await login(user)];
        const d = newSession(user);
        expect((await store.create(d, nonce(), 2)).evicted).toEqual([a.sid, b.sid]);
        const { sessions } = await store.list(user, 10, undefined);
        expect(new Set(sessions.map(({ sid }) => sid))).toEqual(new Set([c.sid, d.sid]));
        expect(await store.find(a.sid)).toEqual({ ok: false, reason: "revoked" });
        expect(await logged(b.sid)).toEqual(["session_limit"]);
      });

      test("expired sessions do not count towards the cap", async () => {
        const user = subject();
        await login(user, { idleTimeoutMs: SECOND });
        const kept = await login(user);
        await login(user, { idleTimeoutMs: SECOND });
        await backend.advance(SECOND);
        expect((await store.create(newSession(user), nonce(), 2)).evicted).toEqual([]);
        expect((await store.find(kept.sid)).ok).toBe(true);
      });

      test("with a cap of one, a login ends the session before it", async () => {
        const user = subject();
        const before = await login(user);
        expect((await store.create(newSession(user), nonce(), 1)).evicted).toEqual([before.sid]);
      });
    });

    describe("create in place of another session", () => {
      test("the other one ends, with the reason", async () => {
        const user = subject();
        const [old, other] = [await login(user), await login(user)];
        const wanted = newSession(user);
        expect(await store.create(wanted, nonce(), CAP, old.sid)).toMatchObject({ replaced: true, evicted: [] });
        expect(await store.find(old.sid)).toEqual({ ok: false, reason: "revoked" });
        expect(await logged(old.sid)).toEqual(["replaced"]);
        const { sessions } = await store.list(user, 10, undefined);
        expect(new Set(sessions.map(({ sid }) => sid))).toEqual(new Set([wanted.sid, other.sid]));
      });

      test("it leaves its place under the cap to the new one", async () => {
        const user = subject();
        const [kept, old] = [await login(user), await login(user)];
        const result = await store.create(newSession(user), nonce(), 2, old.sid);
        expect(result).toMatchObject({ replaced: true, evicted: [] });
        expect((await store.find(kept.sid)).ok).toBe(true);
      });

      test.each([
        ["of another subject in the same partition", neighbour],
        ["of another partition", elsewhere],
      ])("the other one may be %s", async (_, other) => {
        const user = subject();
        const old = await login(other(user));
        const wanted = newSession(user);
        expect(await store.create(wanted, nonce(), CAP, old.sid)).toMatchObject({ replaced: true });
        expect(await store.find(old.sid)).toEqual({ ok: false, reason: "revoked" });
        expect(await logged(old.sid)).toEqual(["replaced"]);
        expect((await store.list(other(user), 10, undefined)).sessions).toEqual([]);
        expect((await store.find(wanted.sid)).ok).toBe(true);
      });

      test("one that is not live is replaced by nothing", async () => {
        const user = subject();
        const old = await login(user);
        await store.end(old.sid, "logout");
        expect(await store.create(newSession(user), nonce(), CAP, old.sid)).toMatchObject({ replaced: false });
        expect(await logged(old.sid)).toEqual(["logout"]);
        expect(await store.create(newSession(user), nonce(), CAP, sidOf(user))).toMatchObject({ replaced: false });
      });
    });

    describe("revokeAll", () => {
      test("every session that is there ends, of every subject, and one that is created in the same millisecond lives", async () => {
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
          expect(await store.endOwned(old.sid, fresh.sid, "logout")).toEqual({ ok: false, reason: "actor_ended" });
          expect(await store.endOwned(fresh.sid, old.sid, "logout")).toEqual({ ok: false, reason: "not_found" });
          const found = await store.find(fresh.sid);
          if (!found.ok) throw new Error("the login after it is not live");
          expect(found.session.createdAt).toBeGreaterThan(until);
          expect(await refresh(fresh.sid, fresh.first)).toMatchObject({ outcome: "rotate" });
          expect((await store.list(user, 10, undefined)).sessions.map(({ sid }) => sid)).toEqual([fresh.sid]);
        }
        for (const { sid } of before) expect(await logged(sid)).toEqual([]); // whatever their number
        expect((await store.revocations(undefined)).revokedUntil).toBe(until);
      });

      test("those that have ended neither count towards the cap nor are ended again", async () => {
        const user = subject();
        const old = [await login(user), await login(user)];
        await store.revokeAll(undefined);
        expect((await store.create(newSession(user), nonce(), 1)).evicted).toEqual([]);
        const outcome = await store.endAll(user, "revoked_subject");
        if (!outcome.ok) throw new Error(outcome.reason);
        expect(outcome.ended).toHaveLength(1);
        for (const { sid } of old) expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
      });

      test("of a time, those that were created before it end, to the millisecond, whenever they were refreshed", async () => {
        const [a, b, c] = [subject(), subject(), subject()];
        await backend.advance(SECOND); // the end of all before this one lies in the past
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
        const nothingMore = await store.revokeAll(storeMs(time - 500)); // takes back nothing
        expect(nothingMore).toBe(time - 501);
        expect(await store.find(early.sid)).toEqual({ ok: false, reason: "revoked" });
      });

      test("a time that is still to come counts as now", async () => {
        const before = await login(subject());
        expect(await store.revokeAll(storeMs(backend.now() + 1e9))).toBe(backend.now());
        expect(await store.find(before.sid)).toEqual({ ok: false, reason: "revoked" });
        expect((await store.find((await login(subject())).sid)).ok).toBe(true);
      });

      test("a clock that was set back since the last login spares no session, and ends no later one", async () => {
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

      test("every listening instance gets a hint, and finds it in the log after its cursor", async () => {
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

    describe("elevate", () => {
      const first = { time: wallMs(1_000_000), methods: ["pwd"], contextClass: "" };
      const second = { time: wallMs(2_000_000), methods: ["pwd", "otp"], contextClass: "urn:example:gold" };

      test("what is known of an authentication comes back, from creation on, and changes nothing else", async () => {
        const user = subject();
        const plain = newSession(user, { claims: '{"role":"x"}', audience: "a".repeat(254) });
        const authenticated = newSession(user, {
          authentication: first,
          client: { ...plain.client, userAgent: "u".repeat(300) },
        });
        for (const session of [plain, authenticated]) {
          const token = { generation: 1, nonce: nonce(), issuedAt: storeMs(0) };
          const { session: created } = await store.create(session, token.nonce, CAP);
          expect(created).toMatchObject(session);
          await backend.advance(SECOND);
          expect(await store.elevate(session.sid, second)).toEqual({
            ok: true,
            session: { ...created, authentication: second },
          });
          expect(await store.elevate(session.sid, second)).toMatchObject({ ok: true }); // run twice
          const found = await store.find(session.sid);
          expect(found).toMatchObject({
            session: { ...created, authentication: second },
            rotation: firstState(token.nonce),
          });
          expect((await refresh(session.sid, token)).session.authentication).toEqual(second);
        }
        const { sessions } = await store.list(user, 10, undefined);
        expect(sessions.map(({ authentication }) => authentication)).toEqual([second, second]);
      });

      test("an earlier authentication is refused, and so is one of a session that is not live", async () => {
        const session = newSession(subject(), { authentication: second });
        await store.create(session, nonce(), CAP);
        expect(await store.elevate(session.sid, first)).toEqual({ ok: false, reason: "outdated" });
        expect(await store.find(session.sid)).toMatchObject({ session });
        await store.end(session.sid, "logout");
        expect(await store.elevate(session.sid, second)).toEqual({ ok: false, reason: "revoked" });
        expect(await store.elevate(sidOf(subject()), second)).toEqual({ ok: false, reason: "unknown" });
      });

      test("it lengthens no session's life", async () => {
        const { sid } = await login(subject());
        await backend.advance(IDLE - SECOND);
        await store.elevate(sid, first);
        await backend.advance(SECOND);
        expect(await store.elevate(sid, first)).toEqual({ ok: false, reason: "unknown" });
      });
    });

    describe("rotate", () => {
      test("a used successor is confirmed and a child is minted", async () => {
        const { sid, first } = await login(subject());
        await backend.advance(SECOND);
        const fresh = nonce();
        const now = backend.now();
        const result = await store.rotate(sid, first, fresh);
        expect(result).toMatchObject({
          outcome: "rotate",
          child: { generation: 2, nonce: fresh, issuedAt: storeMs(now) },
          session: { sid, lastRefreshedAt: now, idleExpiresAt: now + IDLE },
          now,
        });
        expect(await store.find(sid)).toMatchObject({
          rotation: { generation: 1, nonce: first.nonce, childNonce: fresh, childMintedAt: now, childServedAt: now },
          session: { lastRefreshedAt: now, idleExpiresAt: now + IDLE },
        });
      });

      test("a repeated result is the same and slides nothing", async () => {
        const { sid, first } = await login(subject());
        const rotated = await refresh(sid, first);
        await backend.advance(REUSE_INTERVAL);
        const { now: _, ...repeated } = await refresh(sid, first);
        const { child, session } = rotated;
        expect(repeated).toEqual({ ok: true, outcome: "repeat", child, session, device: "unproven" });
      });

      test("a lost result is recovered with another child", async () => {
        const { sid, first } = await login(subject());
        const lost = await refresh(sid, first);
        await backend.advance(REUSE_INTERVAL + 1);
        const recovered = await refresh(sid, first);
        expect(recovered.outcome).toBe("recover");
        expect(recovered.child).toMatchObject({ generation: 2, issuedAt: storeMs(backend.now()) });
        expect(recovered.child.nonce).not.toBe(lost.child.nonce);
        expect(recovered.session.idleExpiresAt).toBe(backend.now() + IDLE);
      });

      test("a token newer than the state, which has lost its last writes, heals it", async () => {
        const { sid } = await login(subject());
        const ahead = { generation: 4_000_000_000, nonce: nonce(), issuedAt: storeMs(backend.now() - SECOND) };
        const healed = await refresh(sid, ahead);
        expect(healed).toMatchObject({ outcome: "heal", child: { generation: ahead.generation + 1 } });
        expect(await store.find(sid)).toMatchObject({ rotation: { generation: ahead.generation, nonce: ahead.nonce } });
      });

      test("the absolute expiry is never slid", async () => {
        const { sid, first } = await login(subject(), { absoluteLifetimeMs: IDLE + SECOND });
        await backend.advance(IDLE - SECOND);
        const { session } = await refresh(sid, first);
        expect(session.idleExpiresAt).toBe(session.absoluteExpiresAt);
        await backend.advance(2 * SECOND);
        expect(["expired", "unknown"]).toContain(outcomeOf(await store.rotate(sid, first, nonce())));
      });

      test("reuse ends the session in the same step", async () => {
        const user = subject();
        const { sid, first } = await login(user);
        const second = await refresh(sid, first);
        await backend.advance(4 * REUSE_INTERVAL);
        const third = await refresh(sid, second.child);
        await backend.advance(4 * REUSE_INTERVAL);
        expect(await store.rotate(sid, first, nonce())).toEqual({ ok: false, reason: "reuse", subject: user });
        expect(await store.rotate(sid, third.child, nonce())).toEqual({ ok: false, reason: "revoked" });
        expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
        expect((await store.list(user, 10, undefined)).sessions).toEqual([]);
        expect(await logged(sid)).toEqual(["reuse"]);
      });

      test("a session that never was is unknown", async () => {
        const result = await store.rotate(
          sidOf(subject()),
          { generation: 1, nonce: nonce(), issuedAt: storeMs(0) },
          nonce(),
        );
        expect(result).toEqual({ ok: false, reason: "unknown" });
      });

      test("a session past its idle timeout is not served, and not live", async () => {
        const user = subject();
        const { sid, first } = await login(user);
        await backend.advance(IDLE);
        expect(["idle", "unknown"]).toContain(outcomeOf(await store.rotate(sid, first, nonce())));
        expect(await store.find(sid)).toEqual({ ok: false, reason: "unknown" });
        expect((await store.list(user, 10, undefined)).sessions).toEqual([]);
      });

      test("of many requests with one token, one rotates and all get the same successor", async () => {
        const { sid, first } = await login(subject());
        const other = await backend.open();
        const results = await Promise.all(
          Array.from({ length: 40 }, (_, at) => (at % 2 ? store : other).rotate(sid, first, nonce())),
        );
        expect(results.filter((result) => outcomeOf(result) === "rotate")).toHaveLength(1);
        expect(results.filter((result) => outcomeOf(result) === "repeat")).toHaveLength(39);
        expect(new Set(results.map((result) => "child" in result && result.child.nonce)).size).toBe(1);
      });
    });

    describe("end", () => {
      test("an ended session is served no more, marked and logged", async () => {
        const user = subject();
        const { sid, first } = await login(user);
        expect(await store.end(sid, "logout")).toEqual(ENDED);
        expect(await store.rotate(sid, first, nonce())).toEqual({ ok: false, reason: "revoked" });
        expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
        expect((await store.list(user, 10, undefined)).sessions).toEqual([]);
        expect((await store.revocations(undefined)).revocations).toContainEqual({
          sid,
          revokedAt: backend.now(),
          expiresAt: backend.now() + MARKER_LIFE,
          reason: "logout",
        });
      });

      test("a second end changes nothing", async () => {
        const { sid } = await login(subject());
        await store.end(sid, "logout");
        expect(await store.end(sid, "revoked_by_admin")).toEqual(ALREADY_ENDED);
        expect(await logged(sid)).toEqual(["logout"]);
      });

      test("a session that the store does not know is marked all the same", async () => {
        const sid = sidOf(subject());
        expect(await store.end(sid, "logout")).toEqual(MARKED);
        expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
        expect(await store.end(sid, "logout")).toEqual(ALREADY_ENDED);
        expect(await logged(sid)).toEqual(["logout"]);
      });

      test("a session past its lifetime is marked, not ended", async () => {
        const { sid } = await login(subject(), { idleTimeoutMs: SECOND });
        await backend.advance(SECOND);
        expect(await store.end(sid, "logout")).toEqual(MARKED);
      });

      test("the marker lives until the last access token has expired", async () => {
        const { sid } = await login(subject());
        await store.end(sid, "logout");
        await backend.advance(MARKER_LIFE - 1);
        expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
        await backend.advance(1);
        expect(await store.find(sid)).toEqual({ ok: false, reason: "unknown" });
      });
    });

    describe("endOwned", () => {
      test("a session ends another one of its subject, or itself", async () => {
        const user = subject();
        const [actor, target] = [await login(user), await login(user)];
        expect(await store.endOwned(actor.sid, target.sid, "revoked_by_owner")).toEqual({ ok: true });
        expect(await store.find(target.sid)).toEqual({ ok: false, reason: "revoked" });
        expect(await logged(target.sid)).toEqual(["revoked_by_owner"]);
        expect(await store.endOwned(actor.sid, actor.sid, "revoked_by_owner")).toEqual({ ok: true });
        expect(await store.find(actor.sid)).toEqual({ ok: false, reason: "revoked" });
      });

      test("a session of another subject is not found, in the same partition or another", async () => {
        const user = subject();
        const actor = await login(user);
        for (const target of [await login(neighbour(user)), await login(elsewhere(user))]) {
          expect(await store.endOwned(actor.sid, target.sid, "revoked_by_owner")).toEqual({
            ok: false,
            reason: "not_found",
          });
          expect((await store.find(target.sid)).ok).toBe(true);
        }
      });

      test("a session that is not there is not found, and not marked", async () => {
        const user = subject();
        const actor = await login(user);
        const unknown = sidOf(user);
        expect(await store.endOwned(actor.sid, unknown, "revoked_by_owner")).toEqual({
          ok: false,
          reason: "not_found",
        });
        expect(await store.find(unknown)).toEqual({ ok: false, reason: "unknown" });
      });

      test("an ended session ends nothing", async () => {
        const user = subject();
        const [actor, target, other] = [await login(user), await login(user), await login(elsewhere(user))];
        await store.end(actor.sid, "logout");
        expect(await store.endOwned(actor.sid, target.sid, "revoked_by_owner")).toEqual({
          ok: false,
          reason: "actor_ended",
        });
        expect(await store.endOwned(actor.sid, other.sid, "revoked_by_owner")).toEqual({
          ok: false,
          reason: "actor_ended",
        });
        expect((await store.find(target.sid)).ok).toBe(true);
      });
    });

    describe("endAll", () => {
      test("ends what the subject has, oldest first, and no others; a login after it lives", async () => {
        const user = subject();
        const [a, b, other] = [await login(user), await login(user), await login(neighbour(user))];
        expect(await store.endAll(user, "revoked_subject")).toEqual(endedAll(a.sid, b.sid));
        const after = await login(user);
        expect(await store.find(a.sid)).toEqual({ ok: false, reason: "revoked" });
        expect(await logged(b.sid)).toEqual(["revoked_subject"]);
        expect((await store.find(other.sid)).ok).toBe(true);
        expect((await store.list(user, 10, undefined)).sessions.map(({ sid }) => sid)).toEqual([after.sid]);
        expect(await store.endAll(subject(), "revoked_subject")).toEqual(endedAll());
      });

      test("spares the one to spare", async () => {
        const user = subject();
        const [a, b, c] = [await login(user), await login(user), await login(user)];
        expect(await store.endAll(user, "revoked_others", { except: b.sid, actor: b.sid })).toEqual(
          endedAll(a.sid, c.sid),
        );
        expect((await store.list(user, 10, undefined)).sessions.map(({ sid }) => sid)).toEqual([b.sid]);
        expect(await store.endAll(user, "revoked_others", { except: b.sid })).toEqual(endedAll());
        expect(await store.endAll(user, "revoked_subject")).toEqual(endedAll(b.sid));
      });

      test("an expired session is not among the ended", async () => {
        const user = subject();
        await login(user, { idleTimeoutMs: SECOND });
        const live = await login(user);
        await backend.advance(SECOND);
        expect(await store.endAll(user, "revoked_subject")).toEqual(endedAll(live.sid));
      });

      test("an actor that has ended, or is of another subject, ends nothing", async () => {
        const user = subject();
        const [actor, other] = [await login(user), await login(user)];
        await store.end(actor.sid, "logout");
        const foreign = [await login(neighbour(user)), await login(elsewhere(user))];
        for (const { sid } of [actor, ...foreign]) {
          expect(await store.endAll(user, "revoked_others", { except: sid, actor: sid })).toEqual({
            ok: false,
            reason: "actor_ended",
          });
        }
        expect((await store.find(other.sid)).ok).toBe(true);
      });

      test("hundreds of sessions end in one step", async () => {
        const user = subject();
        const sids: SessionId[] = [];
        for (let at = 0; at < 300; at++) {
          const session = newSession(user);
          sids.push(session.sid);
          await store.create(session, nonce(), 1000);
        }
        const outcome = await store.endAll(user, "revoked_subject");
        if (!outcome.ok) throw new Error(outcome.reason);
        expect(outcome.count).toBe(300);
        expect([...outcome.ended].sort()).toEqual(sids.sort()); // in one millisecond, none is the oldest
      });
    });

    describe("list", () => {
      test("pages hold every live session once, newest first", async () => {
        const user = subject();
        const expected: SessionId[] = [];
        for (let at = 0; at < 7; at++) {
          expected.unshift((await login(user)).sid);
          if (at % 2) await backend.advance(1);
        }
        const gone = await login(user);
        await store.end(gone.sid, "logout");
        const seen: { sid: SessionId; createdAt: number }[] = [];
        let from: string | undefined;
        let pages = 0;
        do {
          const page = await store.list(user, 3, from);
          seen.push(...page.sessions);
          from = page.next;
          pages++;
        } while (from !== undefined);
        expect(pages).toBe(3);
        expect(seen.map(({ sid }) => sid).sort()).toEqual([...expected].sort());
        const order = seen.map(({ createdAt, sid }) => `${createdAt} ${sid}`);
        expect(order).toEqual([...order].sort().reverse());
      });

      test("a page goes on after a session that has ended meanwhile", async () => {
        const user = subject();
        const old = await login(user);
        await backend.advance(1);
        const young = await login(user);
        const { sessions, next } = await store.list(user, 1, undefined);
        expect(sessions.map(({ sid }) => sid)).toEqual([young.sid]);
        await store.end(young.sid, "logout");
        expect((await store.list(user, 1, next)).sessions.map(({ sid }) => sid)).toEqual([old.sid]);
      });

      test("a full last page has no next one", async () => {
        const user = subject();
        await login(user);
        expect((await store.list(user, 1, undefined)).next).toBeUndefined();
      });

      test.each(["", "x", "1.x", "-1.AAAAAAAAAAAAAAAAAAAAAAA"])(
        "a made-up page position is refused: %s",
        async (from) => {
          await expect(store.list(subject(), 1, from)).rejects.toThrow(InvalidCursor);
        },
      );
    });

    describe("listAll", () => listAllContract(() => ({ backend, store, login })));

    describe("many sessions of a subject", () => manySessionsContract(() => ({ backend, store, login })));

    describe("device binding", () => deviceContract(() => ({ backend, store, login })));

    describe("events", () => eventsContract(() => ({ backend, store })));

    describe("revocations", () => {
      test("a reader that resumes misses nothing, whichever instance wrote it", async () => {
        const other = await backend.open();
        const ended: SessionId[] = [];
        const seen = new Set<SessionId>();
        let cursor: string | undefined;
        for (let round = 0; round < 10; round++) {
          for (const instance of [store, other]) {
            const sid = sidOf(subject());
            await instance.end(sid, "logout");
            ended.push(sid);
          }
          await backend.advance(round % 3);
          const batch = await (round % 2 ? store : other).revocations(cursor);
          for (const { sid } of batch.revocations) seen.add(sid);
          cursor = batch.cursor;
        }
        expect(ended.filter((sid) => !seen.has(sid))).toEqual([]);
      });

      test("of a thousand sessions that ended in one millisecond none is missed", async () => {
        const user = subject();
        const ended = Array.from({ length: 1_200 }, () => sidOf(user));
        await Promise.all(ended.map((sid) => store.end(sid, "logout")));
        const { revocations, cursor } = await store.revocations(undefined);
        const seen = new Set(revocations.map(({ sid }) => sid));
        expect(ended.filter((sid) => !seen.has(sid))).toEqual([]);
        await backend.advance(1);
        const last = sidOf(user);
        await store.end(last, "logout");
        expect((await store.revocations(cursor)).revocations.map(({ sid }) => sid)).toContain(last);
      });

      test("a reader that resumes does not get the whole log again", async () => {
        const sid = sidOf(subject());
        await store.end(sid, "logout");
        await backend.advance(60 * SECOND);
        const { cursor } = await store.revocations(undefined);
        const { revocations } = await store.revocations(cursor);
        expect(revocations.map((entry) => entry.sid)).not.toContain(sid);
      });

      test("what no token can outlive is dropped", async () => {
        const user = subject();
        const sid = sidOf(user);
        await store.end(sid, "logout");
        await backend.advance(MARKER_LIFE);
        await store.end(sidOf(user), "logout");
        const { revocations } = await store.revocations(undefined);
        expect(
          revocations.filter(({ expiresAt }) => expiresAt > backend.now()).map((entry) => entry.sid),
        ).not.toContain(sid);
      });

      test.each(["", "x", "r.", "e.1", "r.-1", "r.1x", "r.1\n", " r.1", "e.0123456789abcdef.1x"])(
        "a made-up cursor is refused: %j",
        async (cursor) => {
          await expect(store.revocations(cursor)).rejects.toThrow(InvalidCursor);
        },
      );

      test("a hint comes to every instance that listens", async () => {
        const other = await backend.open();
        const here = hints(store);
        const there = hints(other);
        // A hint may come before the subscription stands, and then it is an empty one.
        await there.received(() => true);
        await here.received(() => true);
        const sid = sidOf(subject());
        await store.end(sid, "logout");
        const isIt = (hint: readonly Revocation[]) =>
          hint.some((entry) => entry.sid === sid && entry.reason === "logout");
        await here.received(isIt);
        await there.received(backend.hintsAcrossInstances === "entries" ? isIt : (hint) => hint.length === 0);
        here.stop();
        there.stop();
      });
    });

    test("a closed store is unavailable", async () => {
      const other = await backend.open();
      await other.ping();
      await other.close();
      await expect(other.ping()).rejects.toThrow(StoreUnavailable);
      await expect(other.find(sidOf(subject()))).rejects.toThrow(StoreUnavailable);
      await expect(other.end(sidOf(subject()), "logout")).rejects.toThrow(StoreUnavailable);
      await other.close();
    });
  });
}

/** Another subject whose sessions lie in the same partition. */
function neighbour(user: string): string {
  for (;;) {
    const other = subject("neighbour");
    if (sidOf(other).slice(0, 1) === sidOf(user).slice(0, 1) && partition(other) === partition(user)) return other;
  }
}

/** A subject of another partition. */
function elsewhere(user: string): string {
  for (;;) {
    const other = subject("elsewhere");
    if (partition(other) !== partition(user)) return other;
  }
}

function partition(user: string): number | undefined {
  return Buffer.from(sidOf(user), "base64url")[0];
}

function hints(store: SessionStore) {
  const received: (readonly Revocation[])[] = [];
  let wake = () => {};
  const stop = store.onRevocation((hint) => {
    received.push(hint);
    wake();
  });
  return {
    stop,
    /** Resolves with the first hint not taken yet that will do. */
    async received(isIt: (hint: readonly Revocation[]) => boolean): Promise<void> {
      for (;;) {
        const hint = received.shift();
        if (hint === undefined) await new Promise<void>((resolve) => (wake = resolve));
        else if (isIt(hint)) return;
      }
    },
  };
}
