/** Tests that every store has to pass: the end of one session. */
import { describe, expect, test } from "vitest";
import { storeMs } from "../../../../src/service/session/time.ts";
import type { Context } from "../../../support/store/context.ts";
import {
  ALREADY_ENDED,
  ENDED,
  elsewhere,
  MARKED,
  MARKER_LIFE,
  neighbour,
  nonce,
  SECOND,
  sidOf,
  subject,
} from "../../../support/store/sessions.ts";

export function endContract(context: () => Context): void {
  describe("end", () => {
    test("an ended session is served no more, marked and logged", async () => {
      const { backend, store, login } = context();
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
      const { store, login, logged } = context();
      const { sid } = await login(subject());
      await store.end(sid, "logout");
      expect(await store.end(sid, "revoked_by_admin")).toEqual(ALREADY_ENDED);
      expect(await logged(sid)).toEqual(["logout"]);
    });

    test("a session that the store does not know is marked all the same", async () => {
      const { store, logged } = context();
      const sid = sidOf(subject());
      expect(await store.end(sid, "logout")).toEqual(MARKED);
      expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
      expect(await store.end(sid, "logout")).toEqual(ALREADY_ENDED);
      expect(await logged(sid)).toEqual(["logout"]);
    });

    test("what a client proves of a session that the store does not know does not matter", async () => {
      const { store, logged } = context();
      const sid = sidOf(subject());
      expect(await store.end(sid, "logout", undefined, { issuedAt: storeMs(0) })).toEqual(MARKED);
      expect(await logged(sid)).toEqual(["logout"]);
    });

    test("a session past its lifetime is marked, not ended", async () => {
      const { backend, store, login } = context();
      const { sid } = await login(subject(), { idleTimeoutMs: SECOND });
      await backend.advance(SECOND);
      expect(await store.end(sid, "logout")).toEqual(MARKED);
    });

    test("the marker lives until the last access token has expired", async () => {
      const { backend, store, login } = context();
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
      const { store, login, logged } = context();
      const user = subject();
      const [caller, target] = [await login(user), await login(user)];
      expect(await store.endOwned(caller.sid, target.sid, "revoked_by_owner")).toEqual({ ok: true });
      expect(await store.find(target.sid)).toEqual({ ok: false, reason: "revoked" });
      expect(await logged(target.sid)).toEqual(["revoked_by_owner"]);
      expect(await store.endOwned(caller.sid, caller.sid, "revoked_by_owner")).toEqual({ ok: true });
      expect(await store.find(caller.sid)).toEqual({ ok: false, reason: "revoked" });
    });

    test("a session of another subject is not found, in the same partition or another", async () => {
      const { store, login } = context();
      const user = subject();
      const caller = await login(user);
      for (const target of [await login(neighbour(user)), await login(elsewhere(user))]) {
        expect(await store.endOwned(caller.sid, target.sid, "revoked_by_owner")).toEqual({
          ok: false,
          reason: "not_found",
        });
        expect((await store.find(target.sid)).ok).toBe(true);
      }
    });

    test("a session that is not there is not found, and not marked", async () => {
      const { store, login } = context();
      const user = subject();
      const caller = await login(user);
      const unknown = sidOf(user);
      expect(await store.endOwned(caller.sid, unknown, "revoked_by_owner")).toEqual({
        ok: false,
        reason: "not_found",
      });
      expect(await store.find(unknown)).toEqual({ ok: false, reason: "unknown" });
    });

    test("an ended session ends nothing", async () => {
      const { store, login } = context();
      const user = subject();
      const [caller, target, other] = [await login(user), await login(user), await login(elsewhere(user))];
      await store.end(caller.sid, "logout");
      expect(await store.endOwned(caller.sid, target.sid, "revoked_by_owner")).toEqual({
        ok: false,
        reason: "caller_ended",
      });
      expect(await store.endOwned(caller.sid, other.sid, "revoked_by_owner")).toEqual({
        ok: false,
        reason: "caller_ended",
      });
      expect((await store.find(target.sid)).ok).toBe(true);
    });
  });
}
