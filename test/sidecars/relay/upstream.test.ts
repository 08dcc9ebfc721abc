/**
 * How a relay reports the freshness of the batches that its upstream delivers. The upstream is simulated, and the test moves the clocks.
 */
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { WatchRevocationsResponseSchema } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { RevocationFeed } from "../../../src/session/feed.ts";
import { Upstream } from "../../../src/sidecars/relay/upstream.ts";
import { until } from "../../support/until.ts";

type Change = { readonly asOf: number; readonly caughtUp?: boolean; readonly sid?: string };

function begin() {
  const ended = new AbortController();
  let nowMs = 1_000_000;
  let streams = 0;
  const queue: Change[] = [];
  let tell = () => {};
  let cut: Error | undefined;
  const client = {
    async *watchRevocations(_: unknown, { signal = ended.signal }: CallOptions = {}) {
      streams++;
      signal.addEventListener("abort", () => tell());
      while (!ended.signal.aborted) {
        if (cut !== undefined) throw cut;
        if (signal.aborted) throw signal.reason;
        const change = queue.shift();
        if (change === undefined) {
          await new Promise<void>((resolve) => {
            tell = resolve;
          });
          continue;
        }
        const { asOf, caughtUp = true, sid } = change;
        const expireTime = timestampFromMs(asOf + 300_000);
        yield create(WatchRevocationsResponseSchema, {
          asOfTime: timestampFromMs(asOf),
          caughtUp,
          cursor: "1",
          revocations: sid === undefined ? [] : [{ sessionId: sid, expireTime, reason: "logout" }],
        });
      }
    },
  };
  const clocks = { clock: () => nowMs, monotonic: () => nowMs };
  const upstream = new Upstream({ client, ...clocks, report() {}, signal: ended.signal });
  const feed = new RevocationFeed({
    ...{ store: upstream, clock: () => nowMs, ranMs: () => nowMs, cpuMs: () => 0, instance: "relay", onError() {} },
    ...{ readIntervalMs: 0, ageMs: () => upstream.ageMs() },
  });
  onTestFinished(() => {
    ended.abort();
    tell();
    return feed.close();
  });
  return {
    feed,
    streams: () => streams,
    advance: (ms: number) => {
      nowMs += ms;
    },
    /** Sends a batch. `ageMs` is how long ago the upstream read the log. */
    send(change: Partial<Change> & { readonly ageMs?: number } = {}) {
      const { ageMs = 0, ...rest } = change;
      queue.push({ asOf: nowMs - ageMs, ...rest });
      tell();
    },
    cut(error: Error | undefined) {
      cut = error;
      tell();
    },
    watch: (cursor = "") => {
      const watcher = new AbortController();
      onTestFinished(() => watcher.abort());
      return feed.watch(cursor, watcher.signal);
    },
  };
}

async function next(batches: ReturnType<ReturnType<typeof begin>["watch"]>) {
  const { value } = await batches.next();
  if (!value) throw new Error("the watch has ended");
  return value;
}

test("the first batch of a stream is passed on without a claim, because nothing shows its age", async () => {
  const relay = begin();
  relay.send({ ageMs: 1_900, sid: "a" });
  const watcher = relay.watch();
  expect(await next(watcher)).toMatchObject({ caughtUp: false, revocations: [{ sid: "a" }] });
  relay.advance(500);
  relay.send();
  expect(await next(watcher)).toMatchObject({ caughtUp: true });
});

test("nothing is sent while the upstream is silent, and later watchers see that it is old", async () => {
  const relay = begin();
  relay.send();
  const watcher = relay.watch();
  await next(watcher);
  relay.advance(500);
  relay.send();
  expect(await next(watcher)).toMatchObject({ caughtUp: true, asOf: 1_000_500 });
  let received = 0;
  const waiting = watcher.next().then(() => received++);
  relay.advance(2_001);
  expect(await next(relay.watch())).toMatchObject({ caughtUp: false, asOf: 1_000_500 });
  expect(received).toBe(0);
  relay.send();
  await waiting;
  expect(received).toBe(1);
});

test("a part of what the upstream has does not count as all of it, however fresh the rest was", async () => {
  const relay = begin();
  relay.send();
  const watcher = relay.watch();
  await next(watcher);
  relay.advance(500);
  relay.send();
  expect(await next(watcher)).toMatchObject({ caughtUp: true });
  relay.advance(10);
  relay.send({ caughtUp: false, sid: "a" });
  expect(await next(watcher)).toMatchObject({ caughtUp: false, revocations: [{ sid: "a" }] });
  relay.advance(10);
  relay.send({ sid: "b" });
  expect(await next(watcher)).toMatchObject({ caughtUp: true, revocations: [{ sid: "b" }] });
});

test("a clock that was set between batches does not make all later ones too old to be complete", async () => {
  const relay = begin();
  relay.send();
  const watcher = relay.watch();
  await next(watcher);
  relay.advance(500);
  relay.send();
  expect(await next(watcher)).toMatchObject({ caughtUp: true });
  const setByMs = 2_500;
  relay.advance(500 + setByMs);
  relay.send({ ageMs: setByMs });
  expect(await next(watcher)).toMatchObject({ caughtUp: false });
  const isComplete: boolean[] = [];
  for (let count = 0; count < 10; count++) {
    relay.advance(500);
    relay.send({ ageMs: setByMs });
    isComplete.push((await next(watcher)).caughtUp);
    await new Promise(setImmediate); // The relay decides whether a stream is late only after reading what has arrived.
  }
  expect(isComplete.at(-1)).toBe(true);
  expect(relay.streams()).toBe(2);
});

test("while the stream is lost, new watchers are refused, and those that stay miss nothing", async () => {
  const relay = begin();
  relay.send();
  const watcher = relay.watch();
  await next(watcher);
  relay.cut(new Error("cut"));
  await until(async () =>
    expect(
      await relay
        .watch()
        .next()
        .then(
          () => "served",
          () => "refused",
        ),
    ).toBe("refused"),
  );
  relay.cut(undefined);
  relay.send({ sid: "a" });
  expect(await next(watcher)).toMatchObject({ revocations: [{ sid: "a" }] });
  expect(relay.streams()).toBeGreaterThan(1);
});

test("a watcher that returns with its cursor gets what it has missed, and nothing twice", async () => {
  const relay = begin();
  relay.send({ sid: "a" });
  const { cursor } = await next(relay.watch());
  relay.advance(500);
  relay.send({ sid: "b" });
  await until(async () => expect(relay.feed.state().entries).toBe(2));
  expect((await next(relay.watch(cursor))).revocations.map(({ sid }) => sid)).toEqual(["b"]);
  expect((await next(relay.watch("other.7"))).revocations.map(({ sid }) => sid)).toEqual(["a", "b"]);
});
