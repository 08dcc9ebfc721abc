/** Random histories of the feed's memory: what watchers learn, at whatever position they are, and what it keeps. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { FeedLog } from "../../../../src/service/session/feed/batches.ts";
import { isStaleMark, type LogEntry } from "../../../../src/service/session/model.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { sidOf } from "../../../support/session/scripted.ts";

const LIFE = 100;

const step = fc.oneof(
  fc.record({ does: fc.constant("end" as const), of: fc.constantFrom("a", "b", "c") }),
  fc.record({
    does: fc.constant("mark" as const),
    of: fc.constantFrom("a", "b"),
    minVersion: fc.integer({ min: 1, max: 4 }),
  }),
  fc.record({ does: fc.constant("pass" as const), ms: fc.constantFrom(1, 30, LIFE - 1, LIFE) }),
  fc.record({ does: fc.constant("read" as const), watcher: fc.nat(2), most: fc.constantFrom(1, 2, 100) }),
  fc.record({ does: fc.constant("again" as const) }),
);

const kindOf = (entry: LogEntry) => `${isStaleMark(entry) ? "mark" : "end"} ${entry.sid}`;

test("a watcher learns all that holds, nothing twice, and a new one of each session its last mark alone", () => {
  fc.assert(
    fc.property(fc.array(step, { minLength: 10, maxLength: 60 }), (steps) => {
      const log = new FeedLog();
      let now = storeMs(1_000);
      const appended: LogEntry[] = [];
      const watchers = [0, 1, 2].map(() => ({ position: 0, seen: [] as LogEntry[] }));
      const append = (entry: LogEntry) => {
        const before = log.end;
        log.append([entry], now);
        if (log.end > before) appended.push(entry);
      };
      const readOn = (watcher: { position: number; seen: LogEntry[] }, most: number) => {
        const { entries, end } = log.read(watcher.position, most);
        watcher.seen.push(...entries);
        watcher.position = end;
      };
      const living = () => appended.filter(({ expiresAt }) => expiresAt > now);
      /** The last entry of each kind and session, which is what holds. */
      const holding = () => new Map(living().map((entry) => [kindOf(entry), entry]));
      const check = (seen: readonly LogEntry[]) => {
        expect(new Set(seen).size).toBe(seen.length);
        const known = new Map(seen.map((entry) => [kindOf(entry), entry]));
        for (const [kind, entry] of holding()) expect([kind, known.get(kind)]).toEqual([kind, entry]);
      };
      for (const each of steps) {
        switch (each.does) {
          case "end":
            append({ sid: sidOf(each.of), reason: "logout", revokedAt: now, expiresAt: storeMs(now + LIFE) });
            break;
          case "mark": {
            const { minVersion } = each;
            append({ sid: sidOf(each.of), minVersion, markedAt: now, expiresAt: storeMs(now + LIFE) });
            break;
          }
          case "pass":
            now = storeMs(now + each.ms);
            log.forgetExpired(now);
            expect(log.end - log.start).toBeLessThanOrEqual(living().length);
            break;
          case "again":
            for (const entry of holding().values()) {
              const { end } = log;
              log.append([entry], now);
              expect(log.end).toBe(end);
            }
            break;
          case "read":
            readOn(watchers[each.watcher] ?? { position: 0, seen: [] }, each.most);
        }
      }
      for (const watcher of watchers) {
        while (watcher.position < log.end) readOn(watcher, 2);
        check(watcher.seen);
      }
      const fresh = { position: log.start, seen: [] as LogEntry[] };
      readOn(fresh, Number.POSITIVE_INFINITY);
      check(fresh.seen);
      const marks = fresh.seen.filter(isStaleMark);
      expect(marks.length).toBe(new Set(marks.map(({ sid }) => sid)).size);
      // Nothing that was appended is kept for longer than it is of use.
      now = storeMs(now + LIFE);
      log.forgetExpired(now);
      expect(log.end - log.start).toBe(0);
    }),
    { numRuns: 300 },
  );
});
