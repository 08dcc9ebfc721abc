/** Tests that every store has to pass: the revocation log, and the notifications about new entries (hints). */
import { describe, expect, test } from "vitest";
import type { LogEntry, SessionId } from "../../../../src/service/session/model.ts";
import { InvalidCursor } from "../../../../src/service/session/ports.ts";
import type { Context } from "../../../support/store/context.ts";
import { hints } from "../../../support/store/hints.ts";
import { MARKER_LIFE, SECOND, sidOf, subject } from "../../../support/store/sessions.ts";

export function revocationsContract(context: () => Context): void {
  describe("revocations", () => {
    test("a reader that resumes misses nothing, whichever instance wrote it", async () => {
      const { backend, store } = context();
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
      const { backend, store } = context();
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
      const { backend, store } = context();
      const sid = sidOf(subject());
      await store.end(sid, "logout");
      await backend.advance(60 * SECOND);
      const { cursor } = await store.revocations(undefined);
      const again = await store.revocations(cursor);
      expect(again.revocations.map((entry) => entry.sid)).not.toContain(sid);
      const { revocations } = await store.revocations(again.cursor);
      expect(revocations.map((entry) => entry.sid)).not.toContain(sid);
    });

    test("what no token can outlive is dropped", async () => {
      const { backend, store } = context();
      const user = subject();
      const sid = sidOf(user);
      await store.end(sid, "logout");
      await backend.advance(MARKER_LIFE);
      await store.end(sidOf(user), "logout");
      const { revocations } = await store.revocations(undefined);
      expect(revocations.filter(({ expiresAt }) => expiresAt > backend.now()).map((entry) => entry.sid)).not.toContain(
        sid,
      );
    });

    test.each(["", "x", "r.", "e.1", "r.-1", "r.1x", "r.1\n", " r.1", "e.0123456789abcdef.1x"])(
      "a made-up cursor is refused: %j",
      async (cursor) => {
        const { store } = context();
        await expect(store.revocations(cursor)).rejects.toThrow(InvalidCursor);
      },
    );

    test("a hint comes to every instance that listens", async () => {
      const { backend, store } = context();
      const other = await backend.open();
      const here = hints(store);
      const there = hints(other);
      // If a notification (hint) is sent before the subscription is established, an empty one arrives later.
      await there.received(() => true);
      await here.received(() => true);
      const sid = sidOf(subject());
      await store.end(sid, "logout");
      const isIt = (hint: readonly LogEntry[]) =>
        hint.some((entry) => entry.sid === sid && "reason" in entry && entry.reason === "logout");
      await here.received(isIt);
      await there.received(backend.hintsAcrossInstances === "entries" ? isIt : (hint) => hint.length === 0);
      here.stop();
      there.stop();
    });
  });
}
