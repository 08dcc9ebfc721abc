/** Watches of the revocation feed that pass their batches to a function instead of yielding them. */
import { getEventListeners } from "node:events";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import type { FeedBatch, RevocationFeed, TakeBatch } from "../../../../src/service/session/feed/feed.ts";
import { pushAtOnce } from "../../../../src/service/session/feed/push.ts";
import { FeedWakes } from "../../../../src/service/session/feed/wakes.ts";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { createFeedWorld, type FeedWorld, open } from "../../../support/session/feed.ts";
import { untilTrue } from "../../../support/until.ts";

let world: FeedWorld;
beforeEach(() => {
  world = createFeedWorld();
});
afterEach(() => world.close());

/**
 * Opens a watch that passes its batches to a function, and reads its first batch. `hold` decides what the function returns or throws for
 * each later batch.
 */
async function push(feed: RevocationFeed, hold: TakeBatch = () => undefined) {
  await open(feed);
  const abort = new AbortController();
  const taken: FeedBatch[] = [];
  let onTaken = () => {};
  const watch = feed.watch("", abort.signal, (batch) => {
    taken.push(batch);
    onTaken();
    return hold(batch);
  });
  const first = (await watch.next()).value as FeedBatch;
  /** Settles when the watch ends, with its result. */
  const end = watch.next();
  end.catch(() => {});
  const until = (sid: SessionId) =>
    new Promise<FeedBatch>((resolve) => {
      onTaken = () => {
        const found = taken.find(({ revocations }) => revocations.some((revocation) => revocation.sid === sid));
        if (found !== undefined) resolve(found);
      };
      onTaken();
    });
  return { first, taken, until, end, stop: () => abort.abort() };
}

/**
 * Returns a function for `hold` that delays the watcher at the first batch with a revocation. Heartbeats before that batch are not delayed.
 */
const heldUp =
  (held: Promise<void>): TakeBatch =>
  ({ revocations }) =>
    revocations.length > 0 ? held : undefined;

test("the first batch is yielded, those after it are passed on", async () => {
  const before = await world.end();
  const { first, taken, until } = await push(world.follow());
  expect(first.revocations.map(({ sid }) => sid)).toEqual([before]);
  const after = await world.end();
  expect((await until(after)).revocations.map(({ sid }) => sid)).toEqual([after]);
  expect(taken.flatMap(({ revocations }) => revocations).map(({ sid }) => sid)).toEqual([after]);
});

test("all watchers that have the same get the same batch", async () => {
  const feed = world.follow();
  const watches = await Promise.all(Array.from({ length: 5 }, () => push(feed)));
  const sid = await world.end();
  const batches = await Promise.all(watches.map(({ until }) => until(sid)));
  expect(new Set(batches).size).toBe(1);
});

test("heartbeats are passed on", async () => {
  const { taken, until } = await push(world.follow());
  const reads = world.reads;
  while (world.reads < reads + 3) await new Promise(setImmediate);
  await until(await world.end());
  expect(taken.filter(({ revocations }) => revocations.length === 0).length).toBeGreaterThan(0);
});

test("a watcher that is held up gets what it missed when it goes on, and others do not wait for it", async () => {
  const feed = world.follow();
  const held = Promise.withResolvers<void>();
  const slow = await push(feed, heldUp(held.promise));
  const fast = await push(feed);
  const first = await world.end();
  await fast.until(first);
  await slow.until(first);
  const [second, third] = [await world.end(), await world.end()];
  await fast.until(third);
  expect(slow.taken.flatMap(({ revocations }) => revocations).map(({ sid }) => sid)).toEqual([first]);
  held.resolve();
  expect((await slow.until(third)).revocations.map(({ sid }) => sid)).toEqual([second, third]);
});

/** Waits until the rounds have ended that wake watchers for what has happened so far. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
}

/** Opens a watch that is held up at its first revocation, in a feed that sends no heartbeats because a reading of its log does not end. */
async function heldWithoutHeartbeats() {
  const held = Promise.withResolvers<void>();
  const { taken, until } = await push(world.follow(), heldUp(held.promise));
  world.stalled = true;
  await untilTrue(() => world.isReading);
  const first = await world.end();
  await until(first);
  await settled();
  const from = taken.length;
  const later = () => taken.slice(from).map(({ revocations }) => revocations.map(({ sid }) => sid));
  return { held, later };
}

test("what came while a watcher was held up is passed on as soon as it is not, and not with the next heartbeat", async () => {
  const { held, later } = await heldWithoutHeartbeats();
  const second = await world.end();
  await settled();
  expect(later()).toEqual([]);
  held.resolve();
  await settled();
  expect(later()).toEqual([[second]]);
});

test("a watcher that was held up gets no empty batch in return", async () => {
  const { held, later } = await heldWithoutHeartbeats();
  held.resolve();
  await settled();
  expect(later()).toEqual([]);
});

test("more than one batch that came meanwhile is passed on at once", async () => {
  const { held, later } = await heldWithoutHeartbeats();
  const sids: SessionId[] = [];
  for (let ended = 0; ended < 1_001; ended++) sids.push(await world.end());
  await settled();
  held.resolve();
  await settled();
  expect(later()).toEqual([sids.slice(0, 1_000), sids.slice(1_000)]);
});

test("others are served between the batches of a long log, also if the watcher takes them at once", async () => {
  const sids: SessionId[] = [];
  for (let ended = 0; ended < 3_001; ended++) sids.push(await world.end());
  let turn = 0;
  let immediate = setImmediate(function next() {
    turn++;
    immediate = setImmediate(next);
  });
  onTestFinished(() => clearImmediate(immediate));
  const turns: number[] = [];
  const { first, until } = await push(world.follow(), () => void turns.push(turn));
  expect(first.revocations).toHaveLength(1_000);
  await until(sids.at(-1) as SessionId);
  expect(turns.length).toBeGreaterThanOrEqual(3);
  expect(turns.filter((each, at) => each === turns[at - 1])).toEqual([]);
});

test("a watcher that is held up too long is cut off with an error", async () => {
  const held = Promise.withResolvers<void>();
  const { end, until } = await push(world.follow(), heldUp(held.promise));
  await until(await world.end());
  await new Promise(setImmediate); // The time limit of a batch begins after the batch was passed to the function.
  world.advanceProcess(10_001);
  held.resolve();
  await expect(end).rejects.toMatchObject({ code: "E429_RATE_LIMITED" });
});

test("an error of the watcher ends its watch alone", async () => {
  const feed = world.follow();
  const withdrawn = new Error("withdrawn");
  const failing = await push(feed, () => {
    throw withdrawn;
  });
  const other = await push(feed);
  const sid = await world.end();
  await expect(failing.end).rejects.toBe(withdrawn);
  await other.until(sid);
});

test("closing ends the watch with an error that sends it elsewhere", async () => {
  const feed = world.follow();
  const { end } = await push(feed);
  await feed.close();
  await expect(end).rejects.toMatchObject({ code: "E503_UNAVAILABLE" });
});

test("an aborted watch ends quietly", async () => {
  const { end, stop } = await push(world.follow());
  stop();
  expect(await end).toMatchObject({ done: true });
});

test("a watch that is held up, fails or ends leaves no listener behind", async () => {
  const wakes = new FeedWakes(() => 0);
  const abort = new AbortController();
  const listeners = () => getEventListeners(abort.signal, "abort").length;
  const next = () => ({ position: 1, isComplete: true, batch: {} as FeedBatch });
  const start = (isBehind: boolean, take: TakeBatch) =>
    pushAtOnce({ position: 0, isBehind }, take, abort.signal, { wakes, next });
  const taking = Promise.resolve();
  expect(await start(true, () => taking)).toEqual({ position: 1, isComplete: true, wakeCount: 0, taking });
  expect(listeners()).toBe(0);
  const withdrawn = new Error("withdrawn");
  const failing = start(true, () => {
    throw withdrawn;
  });
  await expect(failing).rejects.toBe(withdrawn);
  expect(listeners()).toBe(0);
  const taken: unknown[] = [];
  const [pushed, woken] = [start(false, (batch) => void taken.push(batch)), wakes.next(abort.signal)];
  expect(listeners()).toBe(2);
  wakes.wake();
  await woken;
  expect([listeners(), taken.length]).toEqual([1, 1]);
  abort.abort();
  expect(await pushed).toMatchObject({ position: 1, taking: undefined });
  expect(listeners()).toBe(0);
  wakes.wakeNow();
  expect(taken).toHaveLength(1);
});
