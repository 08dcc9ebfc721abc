/** The position in the log at which a watch of the revocation feed begins, and at which it resumes. */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type FeedBatch, RevocationFeed } from "../../../../src/service/session/feed/feed.ts";
import type { Revocation, SessionId } from "../../../../src/service/session/model.ts";
import { InvalidCursor } from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import {
  createFeedWorld,
  type FeedWorld,
  MARKER_LIFE,
  next,
  open,
  random,
  until,
} from "../../../support/session/feed.ts";

let world: FeedWorld;
beforeEach(() => {
  world = createFeedWorld();
});
afterEach(() => world.close());

test("a cursor resumes at the instance that gave it, and at another one", async () => {
  const early = await world.end();
  const feed = world.follow();
  const { first, stop } = await open(feed);
  stop();
  const late = await world.end();
  for (const instance of [feed, world.follow()]) {
    const resumed = await open(instance, first.cursor);
    if (!resumed.first.revocations.some((r) => r.sid === late)) await until(resumed.watch, late);
  }
  expect(early).not.toBe(late);
});

test("a cursor after the end of the log counts as its end", async () => {
  await world.end();
  const feed = world.follow();
  const { first, stop } = await open(feed);
  stop();
  const [instance, position] = first.cursor.split(".");
  const resumed = await open(feed, `${instance}.${Number(position) + 5}`);
  const late = await world.end();
  if (!resumed.first.revocations.some((r) => r.sid === late)) await until(resumed.watch, late);
});

/** Creates a log whose cursors are times, as on Redis, and feeds that read the log. */
function createTimedLog() {
  const entries: Revocation[] = [];
  return {
    revoke(): SessionId {
      const revokedAt = world.clock();
      const sid = random.sessionId("alice");
      entries.push({
        sid,
        revokedAt: storeMs(revokedAt),
        expiresAt: storeMs(revokedAt + MARKER_LIFE),
        reason: "logout",
      });
      return sid;
    },
    follow: () =>
      world.manage(
        new RevocationFeed({
          store: {
            revocations: async (cursor = "0") => ({
              revocations: entries.filter(({ revokedAt }) => revokedAt >= Number(cursor)),
              staleMarks: [],
              revokedUntil: storeMs(0),
              cursor: String(world.clock()),
              now: storeMs(world.clock()),
            }),
            onRevocation: () => () => {},
          },
          ranMs: () => 0,
          cpuMs: () => 0,
          clock: world.processClock,
          instance: random.nonce(),
          onError: () => {},
        }),
      ),
  };
}

test("one millisecond holds more than one instance has read of it", async () => {
  const log = createTimedLog();
  log.revoke();
  const { first } = await open(log.follow());
  const missed = log.revoke();
  const resumed = await open(log.follow(), first.cursor);
  expect(resumed.first.revocations.map(({ sid }) => sid)).toContain(missed);
});

test("batches are bounded, also for a watcher that comes from another instance after a long time", async () => {
  const log = createTimedLog();
  const { first } = await open(log.follow());
  const sids = Array.from({ length: 2500 }, () => log.revoke());
  for (const cursor of ["", first.cursor]) {
    const delivered = new Set<SessionId>();
    const resumed = await open(log.follow(), cursor);
    for (let batch = resumed.first; ; batch = await next(resumed.watch)) {
      expect(batch.revocations.length).toBeLessThanOrEqual(1000);
      for (const { sid } of batch.revocations) delivered.add(sid);
      if (batch.caughtUp) break;
    }
    expect(delivered).toEqual(new Set(sids));
  }
});

describe("a cursor that no feed made is rejected", () => {
  const refuses = (feed: RevocationFeed, cursor: string) =>
    expect(feed.watch(cursor, new AbortController().signal).next()).rejects.toThrow(InvalidCursor);

  test.each([
    ["a word", () => "nonsense"],
    ["a good one with something after it", (good: string) => `${good}0x`],
    ["a good one with a line after it", (good: string) => `${good}\n`],
    ["a good one with something before it", (good: string) => ` ${good}`],
    ["a place without an instance", () => ".1"],
    ["an instance without a place", (good: string) => good.replace(/\d+$/, "")],
    ["a place with a sign", (good: string) => good.replace(/(\d+)$/, "-$1")],
    ["a place beyond all", (good: string) => good.replace(/\d+$/, "1".repeat(16))],
  ])("%s", async (_, spoil) => {
    const feed = world.follow();
    const { first } = await open(feed);
    await refuses(feed, spoil(first.cursor));
  });

  test("in an outage too, whether or not the log was ever read", async () => {
    const feed = world.follow();
    await open(feed);
    world.down = true;
    await refuses(feed, "nonsense");
    await refuses(world.follow(), "nonsense");
  });
});

test("a cursor with anything before or behind it is none", async () => {
  const feed = world.follow();
  const { first } = await open(feed);
  const { cursor } = first;
  expect((await open(feed, cursor)).first.cursor).toBe(cursor);
  for (const bad of [
    `${cursor}x`,
    `${cursor}\n`,
    ` ${cursor}`,
    `.${cursor}`,
    `${cursor}.1`,
    `${cursor}0000000000000000`,
  ]) {
    await expect(feed.watch(bad, new AbortController().signal).next(), bad).rejects.toThrow(InvalidCursor);
  }
});

test("a watcher that is cut in the middle of a snapshot misses nothing elsewhere", async () => {
  const log = createTimedLog();
  const sids = Array.from({ length: 2500 }, () => log.revoke());
  const { first, stop } = await open(log.follow());
  expect(first).toMatchObject({ caughtUp: false });
  stop();
  world.advance(60_000);
  const delivered = new Set(first.revocations.map(({ sid }) => sid));
  const resumed = await open(log.follow(), first.cursor);
  for (let { first: batch } = resumed; ; batch = await next(resumed.watch)) {
    for (const { sid } of batch.revocations) delivered.add(sid);
    if (batch.caughtUp) break;
  }
  expect(delivered).toEqual(new Set(sids));
});

test("whatever happens, a watcher that resumes gets every revocation", async () => {
  const step = fc.constantFrom("end", "cut", "outage", "back", "other instance", "read");
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const own = createFeedWorld();
      try {
        const ended: SessionId[] = [];
        const seen = new Set<SessionId>();
        let feed = own.follow();
        let cursor = "";
        let watching: Awaited<ReturnType<typeof open>> | undefined;
        let reading: Promise<unknown> = Promise.resolve();
        const take = (batch: FeedBatch) => {
          for (const revocation of batch.revocations) seen.add(revocation.sid);
          cursor = batch.cursor;
        };
        for (const what of steps) {
          if (what === "end") ended.push(await own.end());
          if (what === "outage") own.down = true;
          if (what === "back") own.down = false;
          if (what === "other instance") feed = own.follow();
          if (what === "cut") {
            watching?.stop();
            await reading;
            watching = undefined;
          }
          if (what === "read" && watching === undefined) {
            own.down = false;
            watching = await open(feed, cursor);
            take(watching.first);
            const { watch } = watching;
            reading = (async () => {
              for await (const batch of watch) take(batch);
            })();
          }
        }
        own.down = false;
        watching?.stop();
        await reading;
        const last = await open(feed, cursor);
        take(last.first);
        while (ended.some((sid) => !seen.has(sid))) take(await next(last.watch));
        expect(ended.filter((sid) => !seen.has(sid))).toEqual([]);
      } finally {
        await own.close();
      }
    }),
    { numRuns: 60 },
  );
});
