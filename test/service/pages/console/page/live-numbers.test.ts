/** The numbers that the live page computes from two readings of the metrics. */
import { expect, test } from "vitest";
import {
  byLabel,
  type Live,
  latencyBetween,
  startOf,
  total,
} from "../../../../../src/service/pages/console/page/live-numbers.ts";

const DURATIONS = "session_rpc_duration_seconds";

function reading(metrics: Live["metrics"]): Live {
  return { now: 0, storeResponds: true, ringLost: false, feed: { watchers: 0 }, keys: [], metrics };
}

/** Returns metrics of refreshes, as counts by the upper bound of each bucket in s, and metrics of logouts, which must not be counted. */
const durations = (buckets: Readonly<Record<string, number>>, protocol = "http") =>
  Object.entries(buckets).flatMap(([le, value]) => [
    { metricName: `${DURATIONS}_bucket`, labels: { method: "Refresh", le, protocol }, value },
    { metricName: `${DURATIONS}_bucket`, labels: { method: "Logout", le, protocol }, value: 1_000 },
    { metricName: `${DURATIONS}_sum`, labels: { method: "Refresh", protocol }, value: 1_000 },
  ]);
const timed = (...buckets: Parameters<typeof durations>[0][]) =>
  reading([{ name: DURATIONS, values: buckets.flatMap((one, at) => durations(one, `p${at}`)) }]);

test("a total is the sum over all labels, and 0 of what is not there", () => {
  const values = [3, 4].map((value) => ({ value, labels: { outcome: `${value}` } }));
  const live = reading([
    { name: "a", values },
    { name: "b", values: [{ value: 100, labels: {} }] },
  ]);
  expect([total(live, "a"), total(live, "c")]).toEqual([7, 0]);
});

test("an instance started when its metric says, and several workers at no one time", () => {
  const values = [{ value: 1_700_000_000.5, labels: {} }];
  expect(startOf(reading([{ name: "process_start_time_seconds", values }]))).toBe(1_700_000_000_500);
  expect(startOf(reading([]))).toBe(0);
});

test("counts by a label are added up, the highest first, without those that are 0", () => {
  const one = (value: number, outcome: string, protocol: string) => ({ value, labels: { outcome, protocol } });
  const values = [one(1, "reuse", "http"), one(2, "ok", "http"), one(0, "late", "http"), one(5, "ok", "grpc")];
  const live = reading([{ name: "a", values: [...values, { value: 3, labels: { protocol: "http" } }] }]);
  expect(byLabel(live, "a", "outcome")).toEqual([
    ["ok", 7],
    ["", 3],
    ["reuse", 1],
  ]);
});

test("quantiles are those of the refreshes between two readings, within their buckets", () => {
  const before = timed({ "0.01": 50, "0.1": 50, "1": 50, "+Inf": 50 });
  const after = timed({ "0.01": 50, "0.1": 150, "1": 150, "+Inf": 150 });
  const latency = latencyBetween(before, after);
  expect(latency?.p50).toBeCloseTo(55);
  expect(latency?.p99).toBeCloseTo(99.1);
});

test("the order of the buckets does not matter, and protocols are added up", () => {
  const after = timed({ "+Inf": 4, "1": 4, "0.1": 2 }, { "0.1": 2, "1": 4, "+Inf": 4 });
  const latency = latencyBetween(timed(), after);
  expect(latency?.p50).toBeCloseTo(100);
  expect(latency?.p99).toBeCloseTo(982);
});

test("what took longer than the last bound is shown as that", () => {
  expect(latencyBetween(timed(), timed({ "1": 1, "+Inf": 100 }))).toEqual({ p50: 1000, p99: 1000 });
});

test("without refreshes between the readings there is no latency", () => {
  const live = timed({ "1": 3, "+Inf": 3 });
  expect(latencyBetween(live, live)).toBeUndefined();
  expect(latencyBetween(reading([]), reading([]))).toBeUndefined();
  // The counters are lower than before because the instance was restarted in between.
  expect(latencyBetween(live, timed({ "1": 1, "+Inf": 1 }))).toBeUndefined();
});
