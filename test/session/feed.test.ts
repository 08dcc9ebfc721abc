import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createRevocationFeed, type FeedBatch, type RevocationFeed } from "../../src/session/feed.ts";
import type { Revocation, SessionId } from "../../src/session/model.ts";
import { InvalidCursor, type SessionStore, StoreUnavailable } from "../../src/session/ports.ts";
import { createEmbeddedStore } from "../../src/store/embedded/store.ts";
import { createRandom, systemEntropy } from "../../src/tokens/random.ts";

const MARKER_LIFE = 300_000;
const random = createRandom(systemEntropy());

/** A real store on a clock that the test moves and with a switch that the test throws. */
function createWorld() {
  const directory = mkdtempSync(join(tmpdir(), "feed-"));
  let now = Date.now();
  let down = false;
  let here = now;
  const clock = () => now;
  const path = join(directory, "sessions.db");
  const real = createEmbeddedStore({ path, clock, steady: clock, reuseInterval: 10_000, markerLife: MARKER_LIFE });
  const feeds: RevocationFeed[] = [];
  return {
    clock,
    advance(ms: number) {
      now += ms;
    },
    /** The clock of the processes that the feeds run in, which is not the store's. */
    processClock: () => here,
    advanceProcess(ms: number) {
      here += ms;
    },
    set down(value: boolean) {
      down = value;
    },
    reads: 0,
    /** @param ahead how far the clock of the process is ahead of the store's, ms */
    follow(onError: (error: unknown) => void = () => {}, ahead = 0): RevocationFeed {
      const store: Pick<SessionStore, "revocations" | "onRevocation"> = {
        revocations: async (cursor) => {
          this.reads++;
          if (down) throw new StoreUnavailable("down");
          return real.revocations(cursor);
        },
        onRevocation: (wake) => real.onRevocation(wake),
      };
      return this.manage(createRevocationFeed({ store, clock: () => here + ahead, instance: random.nonce(), onError }));
    },
    /** A feed that ends with the world. */
    manage(feed: RevocationFeed): RevocationFeed {
      feeds.push(feed);
      return feed;
    },
    async end(sid = random.sessionId("alice")): Promise<SessionId> {
      await real.end(sid, "logout");
      return sid;
    },
    revokeAll: (createdBefore?: number) => real.revokeAll(createdBefore),
    async close() {
      await Promise.all(feeds.map((feed) => feed.close()));
      await real.close();
      rmSync(directory, { recursive: true });
    },
  };
}

let world: ReturnType<typeof createWorld>;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world.close());

/** A watch that has been opened; a feed that has not read the log yet is asked again, as clients do. */
async function open(feed: RevocationFeed, cursor = "") {
  const abort = new AbortController();
  for (;;) {
    const watch = feed.watch(cursor, abort.signal);
    try {
      const first = await watch.next();
      if (first.done) throw new Error("ended at once");
      return { watch, first: first.value, stop: () => abort.abort() };
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      await new Promise(setImmediate);
    }
  }
}

async function next(watch: AsyncGenerator<FeedBatch, void>): Promise<FeedBatch> {
  const { value } = await watch.next();
  if (!value) throw new Error("the watch has ended");
  return value;
}

/** Reads on until `sid` is delivered; how many empty batches came before. */
async function until(watch: AsyncGenerator<FeedBatch, void>, sid: SessionId): Promise<FeedBatch> {
  for (;;) {
    const batch = await next(watch);
    if (batch.revocations.some((revocation) => revocation.sid === sid)) return batch;
  }
}

test("a watch begins with what is revoked now, and goes on with what happens", async () => {
  const before = await world.end();
  const { watch, first } = await open(world.follow());
  expect(first.revocations.map((r) => r.sid)).toEqual([before]);
  expect(first.caughtUp).toBe(true);
  const after = await world.end();
  expect((await until(watch, after)).revocations).toMatchObject([{ sid: after, reason: "logout" }]);
});

test("a watch that comes before the log has been read waits for it", async () => {
  const sid = await world.end();
  const { value } = await world.follow().watch("", new AbortController().signal).next();
  expect(value).toMatchObject({ revocations: [{ sid }], caughtUp: true });
});

test("a heartbeat is an empty batch, and comes only while the store replies", async () => {
  const reported: unknown[] = [];
  const feed = world.follow((error) => reported.push(error));
  const { watch } = await open(feed);
  expect((await next(watch)).revocations).toEqual([]);
  world.down = true;
  const silence = watch.next();
  const reads = world.reads;
  while (world.reads < reads + 2) await new Promise(setImmediate);
  await expect(Promise.race([silence.then(() => "woken"), Promise.resolve("silent")])).resolves.toBe("silent");
  await expect(feed.watch("", new AbortController().signal).next()).rejects.toThrow(StoreUnavailable);
  expect(reported).toHaveLength(1);
  world.down = false;
  expect((await silence).value).toMatchObject({ revocations: [] });
});

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

/** A log whose cursors are times, as the one on Redis, and feeds that follow it. */
function createTimedLog() {
  const entries: Revocation[] = [];
  return {
    revoke(): SessionId {
      const revokedAt = world.clock();
      const sid = random.sessionId("alice");
      entries.push({ sid, revokedAt, expiresAt: revokedAt + MARKER_LIFE, reason: "logout" });
      return sid;
    },
    follow: () =>
      world.manage(
        createRevocationFeed({
          store: {
            revocations: async (cursor = "0") => ({
              revocations: entries.filter(({ revokedAt }) => revokedAt >= Number(cursor)),
              revokedUntil: 0,
              cursor: String(world.clock()),
              now: world.clock(),
            }),
            onRevocation: () => () => {},
          },
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

test("the end of all sessions is part of every batch from then on, at every instance", async () => {
  const here = await open(world.follow());
  const there = await open(world.follow());
  expect(here.first.revokedUntil).toBe(0);
  const until = await world.revokeAll();
  for (const { watch } of [here, there]) {
    let batch = await next(watch);
    while (batch.revokedUntil === 0) batch = await next(watch);
    expect(batch).toMatchObject({ revokedUntil: until, revocations: [] });
  }
  expect((await open(world.follow())).first.revokedUntil).toBe(until);
  world.advance(1000);
  const sid = await world.end();
  expect(await next(here.watch)).toMatchObject({ revokedUntil: until, revocations: [{ sid }] });
  world.advance(1000);
  const later = await world.revokeAll(until - 5000);
  expect(later).toBeLessThan(until);
  expect((await open(world.follow())).first.revokedUntil).toBe(until);
});

test("a watcher that does not take its batches is cut off with an error", async () => {
  const { watch } = await open(world.follow());
  world.advanceProcess(10_001);
  await expect(watch.next()).rejects.toMatchObject({ code: "E429_RATE_LIMITED" });
});

test("a watcher that takes its batch at the last moment goes on", async () => {
  const { watch } = await open(world.follow());
  world.advanceProcess(10_000);
  expect(await next(watch)).toMatchObject({ caughtUp: true });
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

test("what has expired is not delivered any more", async () => {
  await world.end();
  const feed = world.follow();
  await open(feed);
  world.advance(MARKER_LIFE + 1);
  const reads = world.reads;
  while (world.reads < reads + 2) await new Promise(setImmediate); // the first of them has been taken
  const fresh = await world.end();
  const { first, watch } = await open(feed);
  const batch = first.revocations.length > 0 ? first : await until(watch, fresh);
  expect(batch.revocations.map((r) => r.sid)).toEqual([fresh]);
});

test("a watch that stays open while revocations expire delivers the next one", async () => {
  for (let i = 0; i < 3; i++) await world.end();
  const { watch } = await open(world.follow());
  world.advance(MARKER_LIFE + 1);
  const taken = world.reads + 2;
  // Goes on taking, so that the watcher is not late.
  while (world.reads < taken) await next(watch);
  const fresh = await world.end();
  expect((await until(watch, fresh)).revocations.map((r) => r.sid)).toEqual([fresh]);
});

test("a session that is ended again is delivered again, with its later expiry, and is known until that is over", async () => {
  const entries: Revocation[] = [];
  let hint: (entries: readonly Revocation[]) => void = () => {};
  const store: Pick<SessionStore, "revocations" | "onRevocation"> = {
    revocations: async () => ({ revocations: entries, revokedUntil: 0, cursor: "x", now: world.clock() }),
    onRevocation(wake) {
      hint = wake;
      return () => {};
    },
  };
  const feed = world.manage(
    createRevocationFeed({ store, clock: world.processClock, instance: random.nonce(), onError: () => {} }),
  );
  const sid = random.sessionId("alice");
  const ending = (): Revocation => ({
    sid,
    revokedAt: world.clock(),
    expiresAt: world.clock() + MARKER_LIFE,
    reason: "logout",
  });
  const lost = ending();
  entries.push(lost);
  const { watch, first } = await open(feed);
  expect(first.revocations).toEqual([lost]);
  // A failover lost the ending; the session is ended once more.
  world.advance(5000);
  const second = ending();
  entries.splice(0, 1, second);
  hint([second]);
  expect((await until(watch, sid)).revocations).toEqual([second]);
  // The first one is over: the second is neither forgotten nor delivered once more.
  world.advance(MARKER_LIFE - 4000);
  const later = { ...ending(), sid: random.sessionId("alice") };
  entries.push(later);
  const delivered: Revocation[] = [];
  while (!delivered.includes(later)) delivered.push(...(await next(watch)).revocations);
  expect(delivered).toEqual([later]);
  expect((await open(feed)).first.revocations).toEqual([second, later]);
});

test.each([3_600_000, -3_600_000])(
  "what has expired is known by the store's clock, not by ours: %d ms ahead",
  async (ahead) => {
    const before = await world.end();
    const feed = world.follow(() => {}, ahead);
    const { first, watch } = await open(feed);
    expect(first.revocations.map((r) => r.sid)).toEqual([before]);
    const after = await world.end();
    expect((await until(watch, after)).asOf).toBe(world.clock());
    world.advance(MARKER_LIFE);
    const reads = world.reads;
    while (world.reads < reads + 2) await next(watch);
    expect((await open(feed)).first.revocations).toEqual([]);
  },
);

test("many watchers cost the store no more than one", async () => {
  const feed = world.follow();
  const watches = await Promise.all(Array.from({ length: 50 }, () => open(feed)));
  const reads = world.reads;
  const sid = await world.end();
  await Promise.all(watches.map(({ watch }) => until(watch, sid)));
  expect(world.reads - reads).toBeLessThan(5);
});

test("many watchers that come from an instance that died cost the store no more than one", async () => {
  const sid = await world.end();
  const { first } = await open(world.follow());
  const feed = world.follow();
  await open(feed);
  const reads = world.reads;
  const resumed = await Promise.all(Array.from({ length: 50 }, () => open(feed, first.cursor)));
  for (const each of resumed) expect(each.first.revocations.map((r) => r.sid)).toEqual([sid]);
  expect(world.reads - reads).toBeLessThan(5);
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

test("in an outage news is delivered, and no batch claims to be complete", async () => {
  const feed = world.follow();
  const { watch, first } = await open(feed);
  world.down = true;
  const reads = world.reads;
  while (world.reads < reads + 2) {
    feed.wakeWatchers(); // as when a key is revoked
    await next(watch);
    await new Promise(setImmediate);
  }
  world.advance(1000);
  feed.wakeWatchers();
  expect(await next(watch)).toEqual({
    revocations: [],
    revokedUntil: 0,
    cursor: first.cursor,
    caughtUp: false,
    asOf: first.asOf,
  });
  const hinted = await world.end();
  expect(await next(watch)).toMatchObject({ revocations: [{ sid: hinted }], caughtUp: false, asOf: first.asOf });
  world.down = false;
  for (let batch = await next(watch); !batch.caughtUp; batch = await next(watch));
});

test("closing ends every watch with an error that sends it elsewhere", async () => {
  const feed = world.follow();
  const { watch } = await open(feed);
  const end = watch.next();
  await feed.close();
  await expect(end.then(() => watch.next())).rejects.toMatchObject({ code: "E503_UNAVAILABLE" });
});

test("an aborted watch ends quietly", async () => {
  const { watch, stop } = await open(world.follow());
  const end = watch.next();
  stop();
  expect(await end).toMatchObject({ done: true });
});

test("whatever happens, a watcher that resumes gets every revocation", async () => {
  const step = fc.constantFrom("end", "cut", "outage", "back", "other instance", "read");
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 30 }), async (steps) => {
      const own = createWorld();
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
