import { expect, onTestFinished, test, vi } from "vitest";
import { wallMs } from "../../../src/service/session/time.ts";
import type { Subscription } from "../../../src/service/signals/model.ts";
import type { Cursor, SignalLog, SubscriptionStore } from "../../../src/service/signals/ports.ts";
import { WaitingPolls } from "../../../src/service/signals/streams/poll-wait.ts";
import { Poller, type PollerDeps } from "../../../src/service/signals/streams/poller.ts";

const enterOften = (polls: WaitingPolls, receiver: string) =>
  Array.from({ length: 100 }, () => polls.enter(receiver)).filter((entered) => entered).length;

test("a receiver leaves places to wait for other receivers", () => {
  const polls = new WaitingPolls();
  expect(["one", "two", "three", "four", "five"].map((receiver) => enterOften(polls, receiver))).toEqual([
    ...[16, 16, 16, 16],
    0,
  ]);
  polls.leave("two");
  expect(["one", "five", "six"].map((receiver) => enterOften(polls, receiver))).toEqual([0, 1, 0]);
});

/** Starts a poll of a stream that never has a signal. The returned functions let time pass and announce the end of a session. */
function startPoll() {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const stream: Subscription = {
    ...{ id: "stream", kind: "ssf_poll", state: "active", filter: {}, audience: ["receiver"] },
    ...{ stream: { owner: "receiver" }, createdAt: wallMs(0), failures: 0, delivered: 0, deadLetters: 0 },
  };
  const positions = vi.fn(async () => ["0" as Cursor]);
  const hints = new Set<() => void>();
  const deps: Pick<PollerDeps, "log" | "store" | "subscriptions"> = {
    log: { positions, ends: async () => ["0" as Cursor] } as Partial<SignalLog> as SignalLog,
    subscriptions: { get: async () => stream } as Partial<SubscriptionStore> as SubscriptionStore,
    store: {
      shiftMs: () => 0,
      onRevocation(listener) {
        const hint = () => listener([]);
        hints.add(hint);
        return () => hints.delete(hint);
      },
    },
  };
  const poll = { maxEvents: undefined, returnImmediately: false, verdicts: new Map() };
  const response = new Poller(deps as PollerDeps).poll(
    "stream",
    poll,
    { adminName: "receiver" } as Parameters<Poller["poll"]>[2],
    new AbortController().signal,
  );
  const announce = () => {
    for (const hint of [...hints]) hint();
  };
  return { response, positions, announce, pass: (ms: number) => vi.advanceTimersByTimeAsync(ms) };
}

test("a poll reads the log rarely while endings are announced that it does not return", async () => {
  const { response, positions, announce, pass } = startPoll();
  for (let ms = 0; ms < 20_000; ms += 10) {
    announce();
    await pass(10);
  }
  expect(await response).toEqual({ sets: {}, moreAvailable: false });
  expect(positions.mock.calls.length).toBeLessThan(40);
});

test("a poll reads the log soon after an ending, if no other has been announced recently", async () => {
  const { response, positions, announce, pass } = startPoll();
  for (let ms = 0; ms < 5_000; ms += 10) {
    announce();
    await pass(10);
  }
  await pass(3_000);
  const before = positions.mock.calls.length;
  announce();
  await pass(20);
  expect(positions.mock.calls.length).toBe(before + 1);
  await pass(20_000);
  await response;
});
