/** Tests that every store has to pass: the end of all sessions of a subject. */
import { describe, expect, test } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import type { Context } from "../../../support/store/context.ts";
import {
  elsewhere,
  endedAll,
  neighbour,
  newSession,
  nonce,
  SECOND,
  sidsOf,
  subject,
} from "../../../support/store/sessions.ts";

export function endAllContract(context: () => Context): void {
  describe("endAll", () => {
    test("ends what the subject has, oldest first, and no others; a login after it lives", async () => {
      const { store, login, logged } = context();
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
      const { store, login } = context();
      const user = subject();
      const [a, b, c] = [await login(user), await login(user), await login(user)];
      expect(await store.endAll(user, "revoked_others", { except: b.sid, caller: b.sid })).toEqual(
        endedAll(a.sid, c.sid),
      );
      expect((await store.list(user, 10, undefined)).sessions.map(({ sid }) => sid)).toEqual([b.sid]);
      expect(await store.endAll(user, "revoked_others", { except: b.sid })).toEqual(endedAll());
      expect(await store.endAll(user, "revoked_subject")).toEqual(endedAll(b.sid));
    });

    test("an expired session is not among the ended", async () => {
      const { backend, store, login } = context();
      const user = subject();
      await login(user, { idleTimeoutMs: SECOND });
      const live = await login(user);
      await backend.advance(SECOND);
      expect(await store.endAll(user, "revoked_subject")).toEqual(endedAll(live.sid));
    });

    test("a caller that has ended, or is of another subject, ends nothing", async () => {
      const { store, login } = context();
      const user = subject();
      const [caller, other] = [await login(user), await login(user)];
      await store.end(caller.sid, "logout");
      const foreign = [await login(neighbour(user)), await login(elsewhere(user))];
      for (const { sid } of [caller, ...foreign]) {
        expect(await store.endAll(user, "revoked_others", { except: sid, caller: sid })).toEqual({
          ok: false,
          reason: "caller_ended",
        });
      }
      expect((await store.find(other.sid)).ok).toBe(true);
    });

    test("hundreds of sessions end in one step", async () => {
      const { store } = context();
      const user = subject();
      const sids: SessionId[] = [];
      for (let at = 0; at < 300; at++) {
        const session = newSession(user);
        sids.push(session.sid);
        await store.create(session, nonce(), { cap: 1000 });
      }
      const outcome = await store.endAll(user, "revoked_subject");
      if (!outcome.ok) throw new Error(outcome.reason);
      expect(outcome.count).toBe(300);
      expect(sidsOf(outcome.ended).sort()).toEqual(sids.sort()); // All sessions were created in one millisecond, so none is the oldest.
    });
  });
}
