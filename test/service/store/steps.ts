/** Tests that every store has to pass when the wall clock is set, as a function of the backend. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Session, SessionId } from "../../../src/service/session/model.ts";
import type { SessionStore } from "../../../src/service/session/ports.ts";
import { type StoreMs, storeMs, toWallClock } from "../../../src/service/session/time.ts";
import {
  ABSOLUTE,
  expectCreated,
  IDLE,
  MARKER_LIFE,
  newSession,
  nonce,
  outcomeOf,
  REUSE_INTERVAL as R,
  SECOND,
  sidOf,
  subject,
} from "../../support/store/sessions.ts";

export type SteppingBackend = {
  open(): Promise<SessionStore>;
  /** Makes time pass. */
  advance(ms: number): Promise<void>;
  /** Sets the wall clock forward or back by this time. The monotonic clock is not changed. */
  step(ms: number): Promise<void>;
  /** Returns the time of the wall clock. */
  now(): number;
  stop(): Promise<void>;
};

const HOUR = 3_600 * SECOND;
const STEPS = [-23 * HOUR, -4 * SECOND, R + 1, -R - 1, 3 * R, -3 * R, 23 * HOUR];

export function clockStepContract(name: string, start: () => Promise<SteppingBackend>): void {
  describe(`${name} store, when the wall clock is set`, () => {
    let backend: SteppingBackend;
    let store: SessionStore;
    let other: SessionStore;
    beforeAll(async () => {
      backend = await start();
      [store, other] = [await backend.open(), await backend.open()];
    });
    afterAll(() => backend.stop());

    async function login(more = {}) {
      const first = nonce();
      const session = newSession(subject(), more);
      await store.create(session, first, { cap: 10 });
      return { sid: session.sid, first: { generation: 1, nonce: first, issuedAt: storeMs(0) } };
    }
    const shown = (sid: SessionId, time: StoreMs) => toWallClock(time, store.shiftMs({ sid }));
    async function present(sid: ReturnType<typeof sidOf>, token: Parameters<SessionStore["rotate"]>[1], by = store) {
      const result = await by.rotate(sid, token, nonce());
      if (!result.ok) throw new Error(result.reason);
      return result;
    }

    test.each(STEPS)("by %d ms, rotation goes on as if it had not been, through every instance", async (ms) => {
      const { sid, first } = await login();
      const { child } = await present(sid, first);
      await backend.advance(R / 4);
      await backend.step(ms);
      // The request of another tab, which was under way with the first token.
      expect((await present(sid, first, other)).child).toEqual(child);
      const second = await present(sid, child);
      expect(second).toMatchObject({ outcome: "repeat", child });
      await backend.advance(R);
      const third = await present(sid, child, other);
      expect(third.outcome).toBe("rotate");
      expect(outcomeOf(await present(sid, child))).toBe("repeat");
      expect(shown(sid, third.now)).toBe(backend.now()); // Tokens get their times from the wall clock.
      expect(Math.abs(shown(sid, store.now(sid)) - backend.now())).toBeLessThan(1_000);
      expect(other.shiftMs({ sid })).toBe(store.shiftMs({ sid }));
    });

    test.each(STEPS)("by %d ms, an attacker is detected as before", async (ms) => {
      const { sid, first } = await login();
      const victim = await present(sid, first);
      await backend.advance(2 * R + 1);
      await backend.step(ms);
      await present(sid, victim.child);
      await backend.advance(2 * R + 1);
      expect(outcomeOf(await other.rotate(sid, first, nonce()))).toBe("reuse");
    });

    test("a session lives as long as its timeouts say, by the time that has passed", async () => {
      const { sid, first } = await login({ idleTimeoutMs: IDLE, absoluteLifetimeMs: ABSOLUTE });
      const { child } = await present(sid, first);
      await backend.step(IDLE / 20);
      await backend.advance(IDLE - 1);
      const { session } = await present(sid, child);
      expect(shown(sid, session.lastRefreshedAt)).toBe(backend.now());
      expect(shown(sid, session.idleExpiresAt)).toBe(backend.now() + IDLE);
      await backend.step(-IDLE / 20);
      await backend.advance(IDLE);
      expect(await store.find(sid)).toEqual({ ok: false, reason: "unknown" });
    });

    test("forth and back again un-revokes nothing", async () => {
      const { sid } = await login();
      await store.end(sid, "logout");
      const { cursor } = await store.revocations(undefined);
      await backend.step(23 * HOUR);
      await store.end(sidOf(subject()), "logout"); // Every end of a session also removes expired entries of the log.
      await other.revocations(undefined);
      await backend.step(-23 * HOUR);
      await backend.advance(MARKER_LIFE - 1);
      const { revocations, now } = await other.revocations(undefined);
      const entry = revocations.find((revocation) => revocation.sid === sid);
      expect(entry?.expiresAt).toBeGreaterThan(now);
      expect((await store.revocations(cursor)).now).toBe(now);
    });

    test("pages of a list go on where they were", async () => {
      const user = subject();
      for (let at = 0; at < 4; at++) {
        await store.create(newSession(user), nonce(), { cap: 10 });
        await backend.advance(SECOND);
      }
      const { sessions, next } = await store.list(user, 2, undefined);
      await backend.step(HOUR);
      const rest = await other.list(user, 2, next);
      expect(new Set([...sessions, ...rest.sessions].map(({ sid }) => sid)).size).toBe(4);
    });

    test.each(STEPS)(
      "by %d ms and back, the end of all is that of the sessions of before, and of no other",
      async (ms) => {
        // Returns whether a verifier that follows the feed would consider a session as ended.
        const ended = async (by: SessionStore, { createdAt }: Session) =>
          createdAt <= (await by.revocations(undefined)).revokedUntil;
        const create = async () =>
          expectCreated(await store.create(newSession(subject()), nonce(), { cap: 10 })).session;
        const early = await create();
        await backend.step(ms);
        await backend.advance(SECOND);
        await other.ping();
        const before = await create();
        const until = await other.revokeAll(undefined);
        const after = await create();
        expect(before.createdAt).toBeLessThanOrEqual(until);
        expect(after.createdAt).toBeGreaterThan(until);
        await backend.step(-ms);
        await backend.advance(SECOND);
        const late = await create();
        for (const open of [() => store, () => other, () => backend.open()]) {
          const by = await open(); // An instance that starts now learns from the store that the clock was set.
          for (const session of [early, before]) {
            expect(await by.find(session.sid)).toEqual({ ok: false, reason: "revoked" });
            expect(await ended(by, session)).toBe(true);
          }
          for (const session of [after, late]) {
            expect((await by.find(session.sid)).ok).toBe(true);
            expect(await ended(by, session)).toBe(false);
          }
        }
      },
    );

    test("an instance that comes later agrees with the others", async () => {
      const { sid, first } = await login();
      const { child } = await present(sid, first);
      await backend.step(-7 * HOUR);
      await present(sid, first);
      const late = await backend.open();
      expect((await present(sid, first, late)).child).toEqual(child);
    });
  });
}
