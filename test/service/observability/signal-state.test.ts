/** The gauges by which operators observe subscriptions to signals. */
import { expect, test } from "vitest";
import { createMetrics } from "../../../src/service/observability/metrics.ts";
import { exposeSignals } from "../../../src/service/observability/state-metrics.ts";
import { overseeSubscriptions } from "../../../src/service/signals/manage.ts";
import type { Subscription } from "../../../src/service/signals/model.ts";
import type { WaitingSignal } from "../../../src/service/signals/ports.ts";

const NOW = 1_000_000;

/** Exposes the metrics of subscriptions, some of which have signals that wait. */
function aService(subscriptions: readonly object[], waiting: Readonly<Record<string, object>> = {}) {
  const metrics = createMetrics();
  let now = NOW;
  let reads = 0;
  let isDown = false;
  exposeSignals(
    metrics,
    () => {
      reads++;
      return overseeSubscriptions({
        subscriptions: {
          list: async () => (isDown ? Promise.reject(new Error("down")) : (subscriptions as readonly Subscription[])),
        } as never,
        log: { oldestWaiting: async () => new Map(Object.entries(waiting)) as unknown as Map<string, WaitingSignal> },
        store: { shiftMs: () => 0 },
      });
    },
    () => now,
  );
  return {
    series: async () =>
      (await metrics.expose()).body
        .split("\n")
        .filter((line) => /^session_signal(s_waiting|s_given|_sub|_old)/.test(line)),
    reads: () => reads,
    advance: (ms: number) => {
      now += ms;
    },
    fail: () => {
      isDown = true;
    },
  };
}

const one = { kind: "webhook", state: "active", failures: 0, deadLetters: 0 };

test("subscriptions are counted by kind and condition, with what waits and what was given up", async () => {
  const service = aService(
    [
      { ...one, id: "a", failures: 1, deadLetters: 2 },
      { ...one, id: "b", deadLetters: 3 },
      { ...one, id: "c", failures: 2 },
      { ...one, id: "d", kind: "ssf_push", state: "paused", because: "failing", failures: 9 },
    ],
    {
      a: { sessionId: "s", happenedAt: NOW - 5_000, count: 4 },
      b: { sessionId: "s", happenedAt: NOW - 9_000, count: 1 },
      d: { sessionId: "s", happenedAt: NOW - 60_000, count: 7 },
    },
  );
  const [active, failing] = ['{kind="webhook",state="active"}', '{kind="webhook",state="failing"}'];
  const paused = '{kind="ssf_push",state="paused",because="failing"}';
  expect((await service.series()).sort()).toEqual(
    [
      `session_signal_subscriptions${active} 2`,
      `session_signal_subscriptions${failing} 1`,
      `session_signal_subscriptions${paused} 1`,
      `session_signals_waiting${active} 5`,
      `session_signals_waiting${failing} 0`,
      `session_signals_waiting${paused} 7`,
      `session_signal_oldest_waiting_seconds${active} 9`,
      `session_signal_oldest_waiting_seconds${failing} 0`,
      `session_signal_oldest_waiting_seconds${paused} 60`,
      `session_signals_given_up${active} 5`,
      `session_signals_given_up${failing} 0`,
      `session_signals_given_up${paused} 0`,
    ].sort(),
  );
});

test("the store is read once for all gauges, at most every ten seconds, and without it there are no values", async () => {
  const service = aService([{ ...one, id: "a" }]);
  await service.series();
  service.advance(9_999);
  expect(await service.series()).toHaveLength(4);
  expect(service.reads()).toBe(1);
  service.fail();
  service.advance(1);
  expect(await service.series()).toEqual([]);
  expect(service.reads()).toBe(2);
});
