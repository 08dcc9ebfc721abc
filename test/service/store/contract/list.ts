/** Tests that every store has to pass: the list of the sessions of a subject. */
import { describe, expect, test } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { InvalidCursor } from "../../../../src/service/session/ports.ts";
import type { Context } from "../../../support/store/context.ts";
import { subject } from "../../../support/store/sessions.ts";

export function listContract(context: () => Context): void {
  describe("list", () => {
    test("pages hold every live session once, newest first", async () => {
      const { backend, store, login } = context();
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
      const { backend, store, login } = context();
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
      const { store, login } = context();
      const user = subject();
      await login(user);
      expect((await store.list(user, 1, undefined)).next).toBeUndefined();
    });

    test.each(["", "x", "1.x", "-1.AAAAAAAAAAAAAAAAAAAAAAA"])(
      "a made-up page position is refused: %s",
      async (from) => {
        const { store } = context();
        await expect(store.list(subject(), 1, from)).rejects.toThrow(InvalidCursor);
      },
    );
  });
}
