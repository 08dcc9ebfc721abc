import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { RevocationFeed } from "../../../../src/service/session/feed/feed.ts";
import type { Revocation } from "../../../../src/service/session/model.ts";
import { type SessionStore, StoreUnavailable } from "../../../../src/service/session/ports.ts";
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
import { inTime, untilTrue } from "../../../support/until.ts";

let world: FeedWorld;
beforeEach(() => {
  world = createFeedWorld();
});
afterEach(() => world.close());

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
  const first = await next(world.follow().watch("", new AbortController().signal));
  expect(first).toMatchObject({ revocations: [{ sid }], caughtUp: true });
});

test("a heartbeat is an empty batch, and comes only while the store replies", async () => {
  const reported: unknown[] = [];
  const feed = world.follow((error) => reported.push(error));
  const { watch } = await open(feed);
  expect((await next(watch)).revocations).toEqual([]);
  world.down = true;
  const silence = next(watch);
  const reads = world.reads;
  while (world.reads < reads + 2) await new Promise(setImmediate);
  await expect(Promise.race([silence.then(() => "woken"), Promise.resolve("silent")])).resolves.toBe("silent");
  await expect(feed.watch("", new AbortController().signal).next()).rejects.toThrow(StoreUnavailable);
  expect(reported).toHaveLength(1);
  world.down = false;
  expect(await silence).toMatchObject({ revocations: [] });
});

test("the state says how many watch, how old the last reading is, and how many entries are in memory", async () => {
  world.stalled = true;
  const feed = world.follow();
  expect(feed.state()).toEqual({ watchers: 0, ageMs: undefined, entries: 0 });
  world.stalled = false;
  const { watch } = await open(feed);
  const other = await open(feed);
  await world.end();
  await until(watch, await world.end());
  expect(feed.state()).toMatchObject({ watchers: 2, entries: 2 });
  world.advance(MARKER_LIFE);
  await world.end();
  // What has expired is forgotten with the next reading.
  await untilTrue(() => feed.state().entries === 1);
  await Promise.all([watch.return(), other.watch.return()]);
  world.stalled = true;
  await untilTrue(() => world.isReading);
  world.advanceProcess(700);
  expect(feed.state()).toEqual({ watchers: 0, ageMs: 700, entries: 1 });
  world.stalled = false;
});

test("closing does not wait until the next reading is due", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const feed = world.follow();
  await open(feed);
  await untilTrue(() => vi.getTimerCount() > 0);
  await inTime("the end of the feed", feed.close());
  expect(vi.getTimerCount()).toBe(0);
});

test("a feed that is closed takes no notifications of the store any more", async () => {
  let listeners = 0;
  const batch = { revocations: [], staleMarks: [], revokedUntil: storeMs(0), cursor: "1", now: storeMs(world.clock()) };
  const onRevocation = () => {
    listeners++;
    return () => void listeners--;
  };
  const clocks = { clock: world.processClock, ranMs: () => 0, cpuMs: () => 0 };
  const store = { revocations: async () => batch, onRevocation };
  const feed = new RevocationFeed({ store, ...clocks, instance: random.nonce(), onError: () => {} });
  expect(listeners).toBe(1);
  await feed.close();
  expect(listeners).toBe(0);
});

test("a pause follows what is new, entries or the end of all, and none follows a heartbeat", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const now = storeMs(world.clock());
  const expiresAt = storeMs(now + MARKER_LIFE);
  const ended: Revocation = { sid: random.sessionId("alice"), revokedAt: now, expiresAt, reason: "logout" };
  const nothing = { revocations: [] as Revocation[], staleMarks: [], revokedUntil: storeMs(0), cursor: "1", now };
  const replies = [nothing, { ...nothing, revocations: [ended] }, nothing, { ...nothing, revokedUntil: now }, nothing];
  let costMs = 0;
  const clocks = { clock: world.processClock, ranMs: () => 0, cpuMs: () => (costMs += 5) };
  const store = { revocations: async () => replies.shift() ?? nothing, onRevocation: () => () => {} };
  const feed = world.manage(new RevocationFeed({ store, ...clocks, instance: random.nonce(), onError: () => {} }));
  const timers: number[] = [];
  while (replies.length > 0) {
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
    timers.push(vi.getTimerCount());
    await vi.advanceTimersByTimeAsync(500);
  }
  // One timer waits for the next reading. The other one is that of the pause.
  expect(timers).toEqual([1, 2, 1, 2]);
  await feed.close();
});

test("a notification that entries may be missing starts a reading at once, which goes on after the last one", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const cursors: (string | undefined)[] = [];
  let notify = () => {};
  const batch = { revocations: [], staleMarks: [], revokedUntil: storeMs(0), now: storeMs(world.clock()) };
  const store: Pick<SessionStore, "revocations" | "onRevocation"> = {
    revocations: async (cursor) => ({ ...batch, cursor: String(cursors.push(cursor)) }),
    onRevocation: (wake) => {
      notify = () => wake([]);
      return () => {};
    },
  };
  const clocks = { clock: world.processClock, ranMs: () => 0, cpuMs: () => 0 };
  const feed = world.manage(new RevocationFeed({ store, ...clocks, instance: random.nonce(), onError: () => {} }));
  for (let reading = 0; reading < 3; reading++) {
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
    notify();
  }
  await feed.close();
  expect(cursors.slice(0, 3)).toEqual([undefined, "1", "2"]);
});

test("a watcher that resumes at the same instance gets only what is new", async () => {
  const feed = world.follow();
  await world.end();
  const { first } = await open(feed);
  const sid = await world.end();
  const resumed = await open(feed, first.cursor);
  expect(resumed.first.revocations.map((revocation) => revocation.sid)).toEqual([sid]);
});

test("a batch is complete while the last reading is at most two seconds old", async () => {
  const feed = world.follow();
  const { watch } = await open(feed);
  world.stalled = true;
  await untilTrue(() => world.isReading);
  for (const [passedMs, caughtUp] of [
    [2_000, true],
    [1, false],
  ] as const) {
    world.advanceProcess(passedMs);
    feed.wakeWatchers();
    expect((await next(watch)).caughtUp).toBe(caughtUp);
  }
  world.stalled = false;
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
  const later = await world.revokeAll(storeMs(until - 5000));
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

test("what has expired is not delivered any more", async () => {
  await world.end();
  const feed = world.follow();
  await open(feed);
  world.advance(MARKER_LIFE + 1);
  const reads = world.reads;
  // After two more reads of the log, the feed has processed the notification that the store sent at the beginning.
  while (world.reads < reads + 2) await new Promise(setImmediate);
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
  // The watcher keeps reading batches, because the feed closes watchers that are too slow.
  while (world.reads < taken) await next(watch);
  const fresh = await world.end();
  expect((await until(watch, fresh)).revocations.map((r) => r.sid)).toEqual([fresh]);
});

test("a session that is ended again is delivered again, with its later expiry, and is known until that is over", async () => {
  const entries: Revocation[] = [];
  let hint: (entries: readonly Revocation[]) => void = () => {};
  const store: Pick<SessionStore, "revocations" | "onRevocation"> = {
    revocations: async () => ({
      revocations: entries,
      staleMarks: [],
      revokedUntil: storeMs(0),
      cursor: "x",
      now: storeMs(world.clock()),
    }),
    onRevocation(wake) {
      hint = wake;
      return () => {};
    },
  };
  const feed = world.manage(
    new RevocationFeed({
      store,
      clock: world.processClock,
      ranMs: () => 0,
      cpuMs: () => 0,
      instance: random.nonce(),
      onError: () => {},
    }),
  );
  const sid = random.sessionId("alice");
  const ending = (): Revocation => ({
    sid,
    revokedAt: storeMs(world.clock()),
    expiresAt: storeMs(world.clock() + MARKER_LIFE),
    reason: "logout",
  });
  const lost = ending();
  entries.push(lost);
  const { watch, first } = await open(feed);
  expect(first.revocations).toEqual([lost]);
  // A failover has lost the end of the session, so the session is ended a second time.
  world.advance(5000);
  const second = ending();
  entries.splice(0, 1, second);
  hint([second]);
  expect((await until(watch, sid)).revocations).toEqual([second]);
  // The first of two log entries about this session has expired by now. The second one has not expired and was already delivered, so it is
  // not delivered again.
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

test("in an outage news is delivered, and no batch claims to be complete", async () => {
  const feed = world.follow();
  const { watch, first } = await open(feed);
  world.down = true;
  const reads = world.reads;
  while (world.reads < reads + 2) {
    feed.wakeWatchers(); // When a key is revoked, the service calls this function.
    await next(watch);
    await new Promise(setImmediate);
  }
  world.advance(1000);
  feed.wakeWatchers();
  expect(await next(watch)).toEqual({
    revocations: [],
    staleMarks: [],
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

test("no batch claims to be complete once the store has been silent for two seconds", async () => {
  const feed = world.follow();
  await open(feed);
  world.stalled = true;
  while (!world.isReading) await new Promise(setImmediate);
  expect((await open(feed)).first.caughtUp).toBe(true);
  world.advanceProcess(2001); // The read of the store has neither succeeded nor failed yet.
  const { watch, first } = await open(feed);
  expect(first.caughtUp).toBe(false);
  world.stalled = false;
  expect((await next(watch)).caughtUp).toBe(false); // The read that has succeeded now is as old as its request.
  for (let batch = await next(watch); !batch.caughtUp; batch = await next(watch));
});

test("closing ends every watch with an error that sends it elsewhere", async () => {
  const feed = world.follow();
  const { watch } = await open(feed);
  const end = watch.next();
  await feed.close();
  await expect(end.then(() => watch.next())).rejects.toMatchObject({ code: "E503_UNAVAILABLE" });
});

test("a watch whose batch is being taken while the feed closes ends, too", async () => {
  const feed = world.follow();
  const { watch } = await open(feed);
  await feed.close();
  await expect(next(watch)).rejects.toMatchObject({ code: "E503_UNAVAILABLE" });
});

test("an aborted watch ends quietly", async () => {
  const { watch, stop } = await open(world.follow());
  const end = watch.next();
  stop();
  expect(await end).toMatchObject({ done: true });
});

test("a store that has never responded is no error of the feed: its own part reports the outage", async () => {
  const errors: unknown[] = [];
  world.down = true;
  const feed = world.follow((error) => errors.push(error));
  await expect(feed.watch("", new AbortController().signal).next()).rejects.toThrow();
  expect(errors).toEqual([]);
});

/**
 * Creates a feed over a log whose readings and notifications the test makes. `replies` are those of the readings, in their order: until
 * when sessions that were created have ended, if the reading says so.
 */
function scriptedFeed(replies: readonly Promise<number>[]) {
  const state = { reads: 0, notify: (_: readonly Revocation[]) => {} };
  const batch = { revocations: [], staleMarks: [], revokedUntil: storeMs(0), cursor: "1", now: storeMs(world.clock()) };
  const feed = world.manage(
    new RevocationFeed({
      store: {
        revocations: async () => {
          const revokedUntil = (await replies[state.reads++]) ?? 0;
          return { ...batch, revokedUntil: storeMs(revokedUntil) };
        },
        onRevocation: (listener) => {
          state.notify = listener;
          return () => {};
        },
      },
      ranMs: () => 0,
      cpuMs: () => 0,
      clock: world.processClock,
      instance: random.nonce(),
      onError: () => {},
    }),
  );
  return { feed, state };
}

test("a watcher gets the entries of a notification at once, also while the log is not read", async () => {
  const { promise, resolve } = Promise.withResolvers<number>();
  const { feed, state } = scriptedFeed([Promise.resolve(0), promise]);
  const { watch } = await open(feed);
  const sid = random.sessionId("alice");
  const coming = next(watch);
  state.notify([{ sid, revokedAt: storeMs(1), expiresAt: storeMs(world.clock() + MARKER_LIFE), reason: "logout" }]);
  try {
    expect(await coming).toMatchObject({ revocations: [{ sid }] });
  } finally {
    resolve(0); // Otherwise the feed could not be closed.
  }
});

test("the end of all sessions stays in every batch, although a reading that follows does not repeat it", async () => {
  const { feed, state } = scriptedFeed([Promise.resolve(5), Promise.resolve(0)]);
  const { watch, first } = await open(feed);
  expect(first.revokedUntil).toBe(5);
  state.notify([]);
  expect(await next(watch)).toMatchObject({ revokedUntil: 5 });
});

test("a notification that arrives while the log is read leads to another reading at once", async () => {
  const { promise, resolve } = Promise.withResolvers<number>();
  const { state } = scriptedFeed([promise]);
  state.notify([]);
  resolve(0);
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
  expect(state.reads).toBe(2);
});
