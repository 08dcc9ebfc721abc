/** Two relays that follow each other, as when the host name of their upstream also resolves to the relays themselves. */
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import {
  type WatchRevocationsResponse,
  WatchRevocationsResponseSchema,
} from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { batchMessage } from "../../../src/api/admin/watch-revocations.ts";
import { RevocationFeed } from "../../../src/session/feed.ts";
import { Upstream } from "../../../src/sidecars/relay/upstream.ts";
import { until } from "../../support/until.ts";

type Stream = (signal: AbortSignal) => AsyncIterable<WatchRevocationsResponse>;

/** Starts a relay. @param stream returns the stream that the relay follows next */
function startRelay(instance: string, stream: () => Stream) {
  const ended = new AbortController();
  let batches = 0;
  async function* watchRevocations(_: unknown, { signal = ended.signal }: CallOptions = {}) {
    for await (const batch of stream()(signal)) {
      batches++;
      yield batch;
    }
  }
  const clock = () => performance.now();
  const upstream = new Upstream({
    client: { watchRevocations },
    clock,
    monotonic: clock,
    report() {},
    signal: ended.signal,
  });
  const feed = new RevocationFeed({
    ...{ store: upstream, clock, ranMs: clock, cpuMs: () => 0, instance, onError() {} },
    ...{ readIntervalMs: 0, ageMs: () => upstream.ageMs() },
  });
  onTestFinished(() => {
    ended.abort();
    return feed.close();
  });
  return { feed, batches: () => batches };
}

const streamOf = (feed: () => RevocationFeed): Stream =>
  async function* (signal) {
    for await (const batch of feed().watch("", signal))
      yield create(WatchRevocationsResponseSchema, batchMessage(batch, []));
  };

test("a batch does not go round and round", async () => {
  let follow = () => {};
  const away = new Promise<void>((resolve) => {
    follow = resolve;
  });
  async function* fromService() {
    const asOfMs = performance.now();
    for (const later of [0, 500]) {
      const revocations = later === 0 ? [] : [{ sessionId: "a", expireTime: timestampFromMs(asOfMs + 300_000) }];
      const asOfTime = timestampFromMs(asOfMs + later);
      yield create(WatchRevocationsResponseSchema, { revocations, cursor: "1", caughtUp: true, asOfTime });
    }
    await away;
  }
  const sources: Stream[] = [fromService];
  const first = startRelay("first", () => sources.shift() ?? streamOf(() => second.feed));
  const second = startRelay("second", () => streamOf(() => first.feed));
  await until(async () => expect(second.feed.state().entries).toBe(1));
  follow();
  await until(async () => expect(await first.batches()).toBeGreaterThan(2));
  const silentTurns = 1_000;
  for (let [turn, count] = [0, first.batches()]; turn < silentTurns; turn++) {
    await new Promise(setImmediate);
    if (first.batches() !== count) [turn, count] = [0, first.batches()];
    // A few heartbeats may arrive in this time. If a batch circulated between the relays, it would arrive again in every turn of the event
    // loop.
    expect(count).toBeLessThan(1_000);
  }
});
