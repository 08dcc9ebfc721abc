/** Tests that every store has to pass: updates of a session, and the marks that make its older access tokens stale. */
import { describe, expect, test } from "vitest";
import type { LogEntry, SessionId } from "../../../../src/service/session/model.ts";
import { isStaleMark } from "../../../../src/service/session/model.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import { CAP, type Context } from "../../../support/store/context.ts";
import { hints } from "../../../support/store/hints.ts";
import {
  expectCreated,
  fullSession,
  IDLE,
  MARKER_LIFE,
  newSession,
  nonce,
  SECOND,
  sidOf,
  subject,
} from "../../../support/store/sessions.ts";

const KEEP = { outdatesTokens: false };
const REFRESH = { outdatesTokens: true };
const AUTHENTICATION = { time: wallMs(2_000_000), methods: ["otp"], contextClass: "" };

export function updateContract(context: () => Context): void {
  const marksOf = async (sid: SessionId) =>
    (await context().store.revocations(undefined)).staleMarks.filter((mark) => mark.sid === sid);
  const markOf = (sid: SessionId, minVersion: number, at = context().backend.now()) => ({
    ...{ sid, minVersion, markedAt: at, expiresAt: at + MARKER_LIFE },
  });

  describe("update", () => {
    test("claims and audiences are replaced, counted, carried by the next refresh, and nothing else is changed", async () => {
      const { backend, store, refresh } = context();
      const user = subject();
      const { deviceRequired: _, ...full } = fullSession(user);
      const sessions = [newSession(user), newSession(user, { claims: '{"role":"x"}' }), full];
      for (const session of sessions) {
        const token = { generation: 1, nonce: nonce(), issuedAt: storeMs(0) };
        const { session: created } = expectCreated(await store.create(session, token.nonce, { cap: CAP }));
        expect(created).not.toHaveProperty("version");
        await backend.advance(SECOND);
        const claims = '{"role":"reader"}';
        const first = await store.update(session.sid, { claims, ...KEEP });
        expect(first).toEqual({ ok: true, isChanged: true, session: { ...created, claims, version: 1 } });
        const audience = ["https://a.example", "b".repeat(300)] as const;
        const second = await store.update(session.sid, { audience, ...KEEP });
        const expected = { ...created, claims, audience, version: 2 };
        expect(second).toEqual({ ok: true, isChanged: true, session: expected });
        const { session: refreshed } = await refresh(session.sid, token);
        expect(refreshed).toMatchObject({ claims, audience, version: 2 });
        const cleared = await store.update(session.sid, { claims: "{}", audience: "c", ...KEEP });
        expect(cleared).toMatchObject({ session: { ...refreshed, claims: "{}", audience: "c", version: 3 } });
        expect(await store.find(session.sid)).toMatchObject({ session: { claims: "{}", audience: "c", version: 3 } });
        expect(await marksOf(session.sid)).toEqual([]);
      }
    });

    test("a repeated update changes nothing", async () => {
      const { store, login } = context();
      const { sid } = await login(subject(), { claims: '{"role":"x"}' });
      const same = await store.update(sid, { claims: '{"role":"x"}', ...REFRESH });
      expect(same).toMatchObject({ ok: true, isChanged: false });
      expect(same).not.toMatchObject({ session: { version: expect.anything() } });
      const update = () => store.update(sid, { claims: '{"role":"y"}', audience: ["d", "e"], ...REFRESH });
      const first = await update();
      expect(first).toMatchObject({ isChanged: true, session: { version: 1, staleBelow: 1 } });
      const marks = await marksOf(sid);
      expect(await update()).toEqual({ ...first, isChanged: false });
      expect(await store.update(sid, { claims: '{"role":"y"}', ...KEEP })).toEqual({ ...first, isChanged: false });
      expect(await marksOf(sid)).toEqual(marks);
    });

    test("with `refresh`, tokens of lower versions are marked as stale, once for each version", async () => {
      const { backend, store, login } = context();
      const { sid } = await login(subject());
      const at = backend.now();
      await store.update(sid, { claims: '{"n":1}', ...REFRESH });
      await backend.advance(SECOND);
      await store.update(sid, { claims: '{"n":2}', ...KEEP });
      await store.update(sid, { claims: '{"n":3}', ...KEEP });
      const [mark, ...others] = await marksOf(sid);
      expect(mark).toEqual(markOf(sid, 1, at));
      expect(others).toEqual([]);
      // The values are those of the session already, but tokens of the versions before are accepted.
      const late = await store.update(sid, { claims: '{"n":3}', ...REFRESH });
      expect(late).toMatchObject({ isChanged: true, session: { version: 3, staleBelow: 3 } });
      expect(await marksOf(sid)).toEqual([markOf(sid, 1, at), markOf(sid, 3)]);
      // A mark is no end of a session.
      expect(await store.find(sid)).toMatchObject({ ok: true, session: { version: 3, staleBelow: 3 } });
      expect(await context().logged(sid)).toEqual([]);
    });

    test("a reader that resumes gets marks, too", async () => {
      const { backend, store, login } = context();
      const other = await backend.open();
      const { sid } = await login(subject());
      const { cursor } = await other.revocations(undefined);
      await store.update(sid, { claims: '{"n":1}', ...REFRESH });
      const { staleMarks } = await other.revocations(cursor);
      expect(staleMarks.filter((mark) => mark.sid === sid)).toEqual([markOf(sid, 1)]);
    });

    test("a hint of a mark comes to every instance that listens", async () => {
      const { backend, store, login } = context();
      const other = await backend.open();
      const { sid } = await login(subject());
      const here = hints(store);
      const there = hints(other);
      await there.received(() => true);
      await here.received(() => true);
      await store.update(sid, { claims: '{"n":1}', ...REFRESH });
      const isIt = (hint: readonly LogEntry[]) => hint.some((entry) => entry.sid === sid && isStaleMark(entry));
      await here.received(isIt);
      await there.received(backend.hintsAcrossInstances === "entries" ? isIt : (hint) => hint.length === 0);
      here.stop();
      there.stop();
    });

    test("an update of another version is refused, and of two that know one version only the first counts", async () => {
      const { store, login } = context();
      const { sid } = await login(subject());
      const conflict = { ok: false, reason: "conflict" };
      expect(await store.update(sid, { claims: '{"n":1}', ifVersion: 1, ...REFRESH })).toEqual(conflict);
      const both = await Promise.all(
        ['{"n":1}', '{"n":2}'].map((claims) => store.update(sid, { claims, ifVersion: 0, ...KEEP })),
      );
      expect(both.filter(({ ok }) => ok)).toHaveLength(1);
      expect(both).toContainEqual(conflict);
      expect(await store.update(sid, { claims: "{}", ifVersion: 1, ...KEEP })).toMatchObject({ ok: true });
      expect(await marksOf(sid)).toEqual([]);
    });

    test("a session that is not live is not updated, and its life is not lengthened", async () => {
      const { backend, store, login } = context();
      const { sid } = await login(subject());
      const { sid: ended } = await login(subject());
      await store.end(ended, "logout");
      const update = (of: SessionId) => store.update(of, { claims: '{"n":1}', ...REFRESH });
      expect(await update(ended)).toEqual({ ok: false, reason: "revoked" });
      expect(await update(sidOf(subject()))).toEqual({ ok: false, reason: "unknown" });
      expect(await marksOf(ended)).toEqual([]);
      await backend.advance(IDLE - SECOND);
      expect(await update(sid)).toMatchObject({ ok: true });
      await backend.advance(SECOND);
      expect(await update(sid)).toEqual({ ok: false, reason: "unknown" });
    });

    test("a session that was updated is elevated, bound, ended like others", async () => {
      const { store, login, refresh } = context();
      const { sid, first } = await login(subject(), { claims: '{"role":"x"}' });
      await store.update(sid, { claims: '{"role":"y"}', ...REFRESH });
      expect(await store.elevate(sid, AUTHENTICATION)).toMatchObject({
        session: { claims: '{"role":"y"}', authentication: AUTHENTICATION, version: 2, staleBelow: 1 },
      });
      const { session } = await refresh(sid, first);
      expect(session).toMatchObject({ authentication: AUTHENTICATION, version: 2, staleBelow: 1 });
      expect(await store.update(sid, { claims: "{}", ...KEEP })).toMatchObject({
        session: { claims: "{}", authentication: AUTHENTICATION, version: 3, staleBelow: 1 },
      });
      expect(await store.end(sid, "logout")).toMatchObject({ ok: true, wasLive: true });
    });
  });

  describe("elevate with `refresh`", () => {
    test("it counts a version and marks the ones before as stale", async () => {
      const { store, login } = context();
      const { sid } = await login(subject());
      expect(await store.elevate(sid, AUTHENTICATION, true)).toMatchObject({
        session: { authentication: AUTHENTICATION, version: 1, staleBelow: 1 },
      });
      expect(await marksOf(sid)).toEqual([markOf(sid, 1)]);
      const earlier = { ...AUTHENTICATION, time: wallMs(1_000_000) };
      expect(await store.elevate(sid, earlier, true)).toEqual({ ok: false, reason: "outdated" });
      expect(await marksOf(sid)).toEqual([markOf(sid, 1)]);
    });

    test("a repetition, as after a lost reply, counts no version and marks nothing", async () => {
      const { store, login } = context();
      const { sid } = await login(subject(), { authentication: { ...AUTHENTICATION, time: wallMs(1_000_000) } });
      const first = await store.elevate(sid, AUTHENTICATION, true);
      const marks = await marksOf(sid);
      expect(await store.elevate(sid, AUTHENTICATION, true)).toEqual(first);
      expect(await store.elevate(sid, AUTHENTICATION)).toEqual(first);
      expect(await marksOf(sid)).toEqual(marks);
      const others = [
        { methods: ["pwd"] },
        { contextClass: "gold" },
        { time: wallMs(3_000_000), contextClass: "gold" },
      ];
      for (const [at, other] of others.entries()) {
        const next = await store.elevate(sid, { ...AUTHENTICATION, ...other }, true);
        expect(next).toMatchObject({ session: { version: at + 2, staleBelow: at + 2 } });
      }
    });

    test("tokens from before an elevation become stale by its repetition with `refresh`", async () => {
      const { store, login } = context();
      const { sid } = await login(subject());
      const later = { ...AUTHENTICATION, time: wallMs(3_000_000) };
      for (const [authentication, version] of [[AUTHENTICATION, 1] as const, [later, 2] as const]) {
        const kept = await store.elevate(sid, authentication);
        expect(await marksOf(sid)).toHaveLength(version - 1);
        expect(kept).toMatchObject({ ok: true });
        const refreshed = await store.elevate(sid, authentication, true);
        expect(refreshed).toMatchObject({ session: { authentication, version, staleBelow: version } });
        expect(await store.elevate(sid, authentication, true)).toEqual(refreshed);
        expect(await marksOf(sid)).toHaveLength(version);
      }
    });
  });
}
