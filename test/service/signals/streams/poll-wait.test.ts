import { getEventListeners } from "node:events";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { SessionStore } from "../../../../src/service/session/ports.ts";
import { wallMs } from "../../../../src/service/session/time.ts";
import type { Subscription } from "../../../../src/service/signals/model.ts";
import type { Cursor, SignalLog, SubscriptionStore } from "../../../../src/service/signals/ports.ts";
import { WaitingPolls, waitForSignals } from "../../../../src/service/signals/streams/poll-wait.ts";
import { Poller, type PollerDeps } from "../../../../src/service/signals/streams/poller.ts";

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

describe("a wait", () => {
  /** Begins a wait. Returns how it ends, and what would keep the process busy after it. */
  function startWait(leftMs: number, gatherMs = 20, stopping = new AbortController()) {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const hints = new Set<() => void>();
    const onRevocation: SessionStore["onRevocation"] = (listener) => {
      const hint = () => listener([]);
      hints.add(hint);
      return () => hints.delete(hint);
    };
    const ended: number[] = [];
    void waitForSignals({ onRevocation }, { leftMs, gatherMs }, stopping.signal).then((next) => ended.push(next));
    const pass = async (ms: number) => {
      await vi.advanceTimersByTimeAsync(ms);
      return ended;
    };
    const left = () => [hints.size, vi.getTimerCount(), getEventListeners(stopping.signal, "abort").length];
    const announce = () => {
      for (const hint of hints) hint();
    };
    return { pass, left, announce, stopping };
  }

  test.each([
    [5_000, 1_000],
    [300, 300],
  ])("with %d ms left looks after %d ms, and leaves nothing behind", async (leftMs, ms) => {
    const { pass, left } = startWait(leftMs);
    expect(await pass(ms - 1)).toEqual([]);
    expect(await pass(1)).toEqual([20]);
    expect(left()).toEqual([0, 0, 0]);
  });

  test.each([
    [20, 40],
    [600, 1_000],
  ])("gathers for %d ms after the first ending, and the next one for %d", async (gatherMs, next) => {
    const { pass, left, announce } = startWait(5_000, gatherMs);
    announce();
    expect(await pass(gatherMs - 1)).toEqual([]);
    announce();
    expect(await pass(1)).toEqual([next]);
    expect(left()).toEqual([0, 0, 0]);
  });

  test("ends when the service stops, or at once if it has stopped", async () => {
    const { pass, left, stopping } = startWait(5_000);
    expect(await pass(100)).toEqual([]);
    stopping.abort();
    expect(await pass(0)).toEqual([20]);
    expect(left()).toEqual([0, 0, 0]);
    expect(await startWait(5_000, 20, stopping).pass(0)).toEqual([20]);
  });

  test("that ends while endings are gathered forgets them", async () => {
    const { pass, left, announce, stopping } = startWait(5_000, 600);
    announce();
    stopping.abort();
    expect(await pass(0)).toEqual([1_000]);
    expect(left()).toEqual([0, 0, 0]);
  });
});
