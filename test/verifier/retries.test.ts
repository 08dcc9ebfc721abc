/** When a verifier that follows the feed connects again, and what it reports. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { WatchRevocationsResponseSchema } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import type { AdminClient } from "../../src/verifier/admin/api.ts";
import type { VerifierEvent } from "../../src/verifier/refusals/report.ts";
import { Revocations } from "../../src/verifier/revocations/revocations.ts";

type Batch = MessageInitShape<typeof WatchRevocationsResponseSchema>;
const START = 1_000_000;

beforeEach(() => {
  vi.useFakeTimers({ now: START });
  vi.spyOn(Math, "random").mockReturnValue(1);
});
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/**
 * Follows a feed whose stream number `n` is `streams[n]`: batches, after which it stays open, or an error. An error among the batches ends
 * the stream. Further streams fail.
 */
function follow(...streams: readonly (readonly (Batch | Error)[] | Error)[]) {
  const events: VerifierEvent[] = [];
  const opened: number[] = [];
  const closing = new AbortController();
  async function* watchRevocations(_: unknown, { signal }: { signal: AbortSignal }) {
    const stream = streams[opened.length] ?? new Error("away");
    // In whole tens, because a turn of the faked event loop takes a millisecond.
    opened.push(Math.floor((Date.now() - START) / 10) * 10);
    if (stream instanceof Error) throw stream;
    for (const batch of stream) {
      if (batch instanceof Error) throw batch;
      yield create(WatchRevocationsResponseSchema, batch);
    }
    await new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  }
  const revocations = new Revocations({
    ...{ client: { watchRevocations } as unknown as AdminClient, signal: closing.signal, revokeKeys: () => {} },
    ...{ clock: () => Date.now(), monotonic: () => Date.now(), report: (event) => events.push(event) },
  });
  return { revocations, events, opened, closing };
}
const asOf = (ms: number): Batch => ({ caughtUp: true, asOfTime: timestampFromMs(START + ms) });

test("each retry waits for twice as long as the last one, up to two seconds, and the outage is reported once", async () => {
  const { opened, events, closing } = follow();
  await vi.advanceTimersByTimeAsync(7_200);
  expect(opened).toEqual([0, 50, 150, 350, 750, 1550, 3150, 5150, 7150]);
  expect(events.map(({ event }) => event)).toEqual(["feed_lost"]);
  closing.abort();
});

test("a complete batch ends the outage, and the next one begins with short waits", async () => {
  const away = new Error("away");
  const { opened, events, closing } = follow(away, away, [asOf(0)]);
  await vi.advanceTimersByTimeAsync(150 + 3_000 + 100);
  expect(opened).toEqual([0, 50, 150, 3200]);
  expect(events).toEqual([
    { event: "feed_lost", error: away },
    { event: "feed_following" },
    { event: "feed_lost", error: new Error("the feed is silent") },
  ]);
  closing.abort();
});

test("streams that fail as soon as they are complete are requested at growing intervals", async () => {
  const broken = new Error("not understood");
  const { opened, closing } = follow(...Array<(Batch | Error)[]>(20).fill([asOf(0), broken]));
  await vi.advanceTimersByTimeAsync(7_200);
  expect(opened).toEqual([0, 50, 150, 350, 750, 1550, 3150, 5150, 7150]);
  closing.abort();
});

test("a stream whose newest batch is late is replaced at once", async () => {
  const { events, opened, closing } = follow([asOf(0), asOf(-3_001)], [asOf(0)]);
  await vi.advanceTimersByTimeAsync(100);
  expect(opened).toEqual([0, 50]);
  expect(events).toContainEqual({ event: "feed_lost", error: new Error("the feed is late") });
  closing.abort();
});

test("a stream that was late while batches waited is kept", async () => {
  const { opened, closing } = follow([asOf(0), asOf(-3_001), asOf(0)]);
  await vi.advanceTimersByTimeAsync(100);
  expect(opened).toEqual([0]);
  closing.abort();
});

test("the end of the verifier is no outage, and leaves no timer", async () => {
  const { opened, events, closing } = follow([asOf(0)]);
  await vi.advanceTimersByTimeAsync(100);
  closing.abort();
  await vi.advanceTimersByTimeAsync(10_000);
  expect([opened, events, vi.getTimerCount()]).toEqual([[0], [{ event: "feed_following" }], 0]);
});

test("the age of the revocations counts from the store's time", async () => {
  const { revocations, closing } = follow([asOf(0)]);
  expect(revocations.stalenessMs(START, START)).toBe(Number.POSITIVE_INFINITY);
  await vi.advanceTimersByTimeAsync(100);
  await revocations.ready;
  expect(revocations.stalenessMs(START + 70, START + 80)).toBe(80);
  closing.abort();
});
