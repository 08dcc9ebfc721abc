/** A stream of the feed is given up after three seconds without a batch, and not earlier. */
import { create } from "@bufbuild/protobuf";
import { expect, onTestFinished, test, vi } from "vitest";
import {
  type WatchRevocationsResponse,
  WatchRevocationsResponseSchema,
} from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { afterReading } from "../../src/platform/clock/after-reading.ts";
import { Revocations } from "../../src/verifier/revocations/revocations.ts";

/** Starts a feed that sends a batch on demand and records whether its caller gives up. */
function startFeed() {
  let signal: AbortSignal | undefined;
  let send = () => {};
  const watchRevocations = (_: unknown, options?: { readonly signal?: AbortSignal }) => {
    signal = options?.signal;
    return {
      async *[Symbol.asyncIterator](): AsyncGenerator<WatchRevocationsResponse> {
        for (;;) {
          await new Promise<void>((resolve, reject) => {
            send = resolve;
            options?.signal?.addEventListener("abort", () => reject(options.signal?.reason));
          });
          yield create(WatchRevocationsResponseSchema, { cursor: "1", caughtUp: true });
        }
      },
    };
  };
  return {
    watchRevocations,
    send: () => send(),
    isGivenUp: () => signal?.aborted,
  };
}

test("a feed that keeps sending is kept; one that is silent for three seconds is given up", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const feed = startFeed();
  const closing = new AbortController();
  onTestFinished(() => closing.abort());
  const revocations = new Revocations({
    client: feed,
    clock: () => 0,
    monotonic: () => 0,
    revokeKeys: () => {},
    report: () => {},
    signal: closing.signal,
  });
  await vi.advanceTimersByTimeAsync(0);
  for (let batch = 0; batch < 5; batch++) {
    feed.send();
    await vi.advanceTimersByTimeAsync(2_900);
  }
  await revocations.ready;
  expect(feed.isGivenUp()).toBe(false);
  await vi.advanceTimersByTimeAsync(200);
  expect(feed.isGivenUp()).toBe(false); // The feed is given up only after data that has already arrived was read.
  await new Promise<void>(afterReading);
  expect(feed.isGivenUp()).toBe(true);
});
