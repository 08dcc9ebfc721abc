/** Marks in the memory of the feed: the last one of a session is delivered, to every watcher that has not had it. */
import { expect, test } from "vitest";
import { FeedBatches, FeedLog } from "../../../../src/service/session/feed/batches.ts";
import { RevocationFeed } from "../../../../src/service/session/feed/feed.ts";
import type { Revocation, StaleMark } from "../../../../src/service/session/model.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { sidOf } from "../../../support/session/scripted.ts";

const LIFE = 300;
const mark = (of: string, minVersion: number, at: number): StaleMark => ({
  ...{ sid: sidOf(of), minVersion },
  ...{ markedAt: storeMs(at), expiresAt: storeMs(at + LIFE) },
});
const end = (of: string, at: number): Revocation => ({
  ...{ sid: sidOf(of), reason: "logout" },
  ...{ revokedAt: storeMs(at), expiresAt: storeMs(at + LIFE) },
});

function feed() {
  const log = new FeedLog();
  const batches = new FeedBatches(log, "i");
  const after = (position: number) =>
    batches.after(position, { revokedUntil: storeMs(0), asOf: storeMs(0), isCurrent: true });
  return {
    log,
    after,
    from: (position: number) => {
      const { revocations, staleMarks } = after(position).batch;
      return [...revocations, ...staleMarks];
    },
  };
}

test("a mark replaces the one before it, for new watchers and for those that resume", () => {
  const { log, after, from } = feed();
  log.append([mark("a", 1, 0), end("b", 1)], storeMs(1));
  const { position } = after(0);
  expect(from(0)).toEqual([end("b", 1), mark("a", 1, 0)]);
  log.append([mark("a", 2, 2), mark("c", 1, 3), mark("a", 3, 4)], storeMs(4));
  expect(from(0)).toEqual([end("b", 1), mark("c", 1, 3), mark("a", 3, 4)]);
  expect(from(position)).toEqual([mark("c", 1, 3), mark("a", 3, 4)]);
  expect(from(after(position).position)).toEqual([]);
});

test("a mark that is known, or older than one that is, adds nothing", () => {
  const { log, from } = feed();
  log.append([mark("a", 2, 5)], storeMs(5));
  log.append([mark("a", 2, 5), mark("a", 1, 1)], storeMs(5));
  expect(log.end).toBe(1);
  expect(from(0)).toEqual([mark("a", 2, 5)]);
  // A failover has lost the update, and a later one has the same version.
  log.append([mark("a", 2, 6)], storeMs(6));
  expect(from(0)).toEqual([mark("a", 2, 6)]);
});

test("a session's mark and its end are both delivered", () => {
  const { log, from } = feed();
  log.append([mark("a", 1, 0), end("a", 0)], storeMs(0));
  expect(from(0)).toEqual([end("a", 0), mark("a", 1, 0)]);
});

test("expired marks are forgotten, and replaced ones take no place for longer than those before them", () => {
  const { log, from } = feed();
  for (let version = 1; version <= 100; version++) log.append([mark("a", version, version)], storeMs(version));
  log.append([end("b", 101)], storeMs(101));
  log.forgetExpired(storeMs(101));
  expect(log.end - log.start).toBe(2);
  log.forgetExpired(storeMs(100 + LIFE));
  expect(from(0)).toEqual([end("b", 101)]);
  log.append([mark("a", 100, 100)], storeMs(100 + LIFE));
  expect(from(0)).toEqual([end("b", 101)]);
  log.append([mark("a", 101, 100 + LIFE)], storeMs(100 + LIFE));
  expect(from(0)).toEqual([end("b", 101), mark("a", 101, 100 + LIFE)]);
});

test("a thousand positions are one batch, also if their marks have been replaced", () => {
  const { log, after } = feed();
  log.append([end("b", 0)], storeMs(0));
  for (let version = 1; version <= 1_500; version++) log.append([mark("a", version, 0)], storeMs(0));
  const first = after(0);
  expect(first).toMatchObject({ position: 1_000, isComplete: false, batch: { staleMarks: [], caughtUp: false } });
  const second = after(first.position);
  expect(second).toMatchObject({ isComplete: true, batch: { revocations: [], staleMarks: [mark("a", 1_500, 0)] } });
});

test("of one reading, what expires first is forgotten first, whether mark or end", async () => {
  const none = { revocations: [], staleMarks: [], revokedUntil: storeMs(0), cursor: "1" };
  const readings = [
    { ...none, revocations: [end("a", 200)], staleMarks: [mark("b", 1, 0)], now: storeMs(200) },
    { ...none, now: storeMs(LIFE + 1) },
  ];
  const store = {
    revocations: async () => readings.shift() ?? Promise.withResolvers<never>().promise,
    onRevocation: () => () => {},
  };
  const clock = () => 0;
  const feed = new RevocationFeed({ store, clock, ranMs: clock, cpuMs: clock, instance: "i", onError: () => {} });
  const open = () => feed.watch("", new AbortController().signal);
  const watch = open();
  expect((await watch.next()).value).toMatchObject({
    revocations: [{ sid: sidOf("a") }],
    staleMarks: [{ minVersion: 1 }],
  });
  await watch.next();
  expect((await open().next()).value).toMatchObject({ revocations: [{ sid: sidOf("a") }], staleMarks: [] });
  await feed.close();
});
