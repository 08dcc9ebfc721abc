/** When a verifier that polls reads the feed and the keys again, to the millisecond, and how each poll ends. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { WatchRevocationsResponseSchema } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import type { AdminClient } from "../../src/verifier/admin/api.ts";
import { Closing } from "../../src/verifier/closing.ts";
import { VerifierClosedError } from "../../src/verifier/ready.ts";
import type { VerifierEvent } from "../../src/verifier/refusals/report.ts";
import { createOnDemand } from "../../src/verifier/revocations/on-demand.ts";
import { PolledRevocations } from "../../src/verifier/revocations/polled-revocations.ts";

type Batch = MessageInitShape<typeof WatchRevocationsResponseSchema>;
const expireTime = timestampFromMs(1e12);
const CAUGHT_UP: readonly Batch[] = [{ caughtUp: true, cursor: "c" }];

/** Returns polls over a feed that the test sets: the batches of each poll, or its error. */
function start(pollIntervalMs: number) {
  const now = { monotonic: 1_000, wall: 50_000 };
  const events: VerifierEvent[] = [];
  const feed: { next: readonly Batch[] | Error; calls: { cursor: string; signal: AbortSignal }[]; left: number } = {
    ...{ next: CAUGHT_UP, calls: [], left: 0 },
  };
  async function* watchRevocations({ cursor = "" }: { cursor?: string }, options: { signal: AbortSignal }) {
    feed.calls.push({ cursor, signal: options.signal });
    try {
      if (feed.next instanceof Error) throw feed.next;
      for (const batch of feed.next) yield create(WatchRevocationsResponseSchema, batch);
    } finally {
      feed.left++;
    }
  }
  const polls = new PolledRevocations({
    ...{ client: { watchRevocations } as unknown as AdminClient, pollIntervalMs, revokeKeys: () => {} },
    ...{ clock: () => now.wall, monotonic: () => now.monotonic, report: (event) => events.push(event) },
  });
  return { polls, now, events, feed };
}

describe("polls", () => {
  test("are due at first, and when what is known is as old as the interval by either clock", async () => {
    const { polls } = start(500);
    expect([polls.isDue(1_000, 50_000), polls.stalenessMs(1_000, 50_000)]).toEqual([true, Number.POSITIVE_INFINITY]);
    await polls.poll();
    expect(polls.stalenessMs(1_499, 50_499)).toBe(499);
    expect(polls.stalenessMs(1_002, 50_300)).toBe(300);
    expect([polls.isDue(1_499, 50_499), polls.isDue(1_500, 50_499), polls.isDue(1_499, 50_500)]).toEqual([
      ...[false, true, true],
    ]);
  });

  test.each([
    [5_000, 1_000],
    [400, 400],
  ])("of every %i ms that failed are due after %i ms", async (pollIntervalMs, waitMs) => {
    const { polls, feed } = start(pollIntervalMs);
    feed.next = new Error("away");
    await polls.poll();
    expect([waitMs - 1, waitMs].map((ms) => polls.isDue(1_000 + ms, 50_000 + ms))).toEqual([false, true]);
  });

  test("read until they have caught up, each from the cursor of the last one, and release their call", async () => {
    const { polls, feed } = start(500);
    feed.next = [
      { cursor: "a", revocations: [{ sessionId: "one", expireTime }] },
      { cursor: "b", caughtUp: true, revocations: [{ sessionId: "two", expireTime }] },
      { cursor: "c", revocations: [{ sessionId: "three", expireTime }] },
    ];
    await polls.poll();
    expect(["one", "two", "three"].map((sid) => polls.has(sid, 1))).toEqual([true, true, false]);
    expect(polls.batches).toBe(2);
    await polls.poll();
    expect(feed.calls.map(({ cursor, signal }) => [cursor, signal.aborted])).toEqual([
      ["", true],
      ["b", true],
    ]);
    expect(feed.left).toBe(2);
  });

  test("report each outage once, and its end once", async () => {
    const { polls, events, feed } = start(500);
    const [lost, short] = [new Error("away"), [{}]];
    for (feed.next of [CAUGHT_UP, CAUGHT_UP, lost, lost, CAUGHT_UP, short]) await polls.poll();
    expect(events).toEqual([
      { event: "feed_following" },
      { event: "feed_lost", error: lost },
      { event: "feed_following" },
      { event: "feed_lost", error: new Error("the feed ended before it had caught up") },
    ]);
  });

  test("that failed at first report it, and remember a refused credential until they succeed", async () => {
    const { polls, events, feed } = start(500);
    feed.next = new ConnectError("no", Code.Unauthenticated);
    await polls.poll();
    expect(events.map(({ event }) => event)).toEqual(["feed_lost"]);
    expect(polls.fault).toMatchObject({ code: Code.Unauthenticated });
    feed.next = CAUGHT_UP;
    await polls.poll();
    expect(polls.fault).toBeUndefined();
    feed.next = new ConnectError("away", Code.Unavailable);
    await polls.poll();
    expect(polls.fault).toBeUndefined();
  });

  test("are under way until they end", async () => {
    const { polls } = start(500);
    expect(polls.underWay()).toBeUndefined();
    const poll = polls.poll();
    expect(polls.underWay()).toBeInstanceOf(Promise);
    await poll;
    expect(polls.underWay()).toBeUndefined();
  });
});

describe("reading on demand", () => {
  /** Returns what reads the keys, and the feed if `polls` is given, with the reads that it has made. */
  function open(polls?: PolledRevocations) {
    const state = { due: true, trusted: true, reads: 0 };
    const keys = {
      isDue: () => state.due,
      isTrusted: () => state.trusted,
      read: async () => void state.reads++,
    };
    const closing = new Closing();
    return {
      state,
      closing,
      onDemand: createOnDemand({ keys, polls, closing, clock: () => 50_000, monotonic: () => 1_000 }),
    };
  }

  test.each([true, false])("reads the keys if they are due: %s", async (due) => {
    const { state, onDemand } = open();
    state.due = due;
    const refresh = onDemand.refresh();
    expect(refresh !== undefined).toBe(due);
    await refresh;
    expect(state.reads).toBe(due ? 1 : 0);
  });

  test("reads the feed if it is due", async () => {
    const { polls, feed } = start(500);
    const { state, onDemand } = open(polls);
    state.due = false;
    await onDemand.refresh();
    expect([feed.calls.length, state.reads, onDemand.refresh()]).toEqual([1, 0, undefined]);
  });

  test("is ready when the keys are trusted and the feed is known", async () => {
    await expect(open().onDemand.ready()).resolves.toBeUndefined();
    await expect(open(start(500).polls).onDemand.ready()).resolves.toBeUndefined();
  });

  test("looks again after a second until the keys are trusted", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const { state, onDemand } = open();
    state.trusted = false;
    const ready = vi.fn();
    const waiting = onDemand.ready().then(ready);
    await vi.advanceTimersByTimeAsync(999);
    state.trusted = true;
    expect([state.reads, ready.mock.calls.length]).toEqual([1, 0]);
    await vi.advanceTimersByTimeAsync(1);
    await waiting;
    expect(state.reads).toBe(2);
  });

  test("is never ready with a refused credential", async () => {
    const { polls, feed } = start(500);
    feed.next = new ConnectError("no", Code.PermissionDenied);
    await expect(open(polls).onDemand.ready()).rejects.toMatchObject({ code: Code.PermissionDenied });
  });

  test("stays ready, as the other verifiers do, when a credential is refused later", async () => {
    const { polls, feed } = start(500);
    await polls.poll();
    feed.next = new ConnectError("no", Code.PermissionDenied);
    await polls.poll();
    expect(polls.fault).toBeDefined();
    await expect(open(polls).onDemand.ready()).resolves.toBeUndefined();
  });

  test.each([
    ["the keys are not trusted", false, CAUGHT_UP],
    ["the feed is not known", true, new Error("away")],
  ])("stops waiting at the end of the verifier while %s", async (_, trusted, next) => {
    const { polls, feed } = start(500);
    feed.next = next;
    const { state, onDemand, closing } = open(polls);
    state.trusted = trusted;
    closing.close();
    await expect(onDemand.ready()).rejects.toThrow(VerifierClosedError);
  });
});
