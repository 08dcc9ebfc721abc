import { expect, onTestFinished, test, vi } from "vitest";
import type { MetricValues } from "../../../src/service/observability/metrics.ts";
import { MetricsRounds } from "../../../src/service/workers/metrics-round.ts";
import { inTime } from "../../support/until.ts";

const counted = (value: number) =>
  [
    { name: "calls_total", help: "Calls.", type: "counter", aggregator: "sum", values: [{ value, labels: {} }] },
  ] as unknown as readonly MetricValues[];

test("the counts of workers that end together are all kept", async () => {
  const rounds = new MetricsRounds();
  rounds.report(1, 0, counted(10));
  rounds.report(2, 0, counted(5));
  await Promise.all([rounds.end(1), rounds.end(2)]);
  const [ended = []] = await rounds.collect([3], (worker, round) => rounds.report(worker, round, counted(0)));
  expect(ended.find(({ name }) => name === "calls_total")).toMatchObject({ values: [{ value: 15 }] });
});

const gauge = (value: number) =>
  [
    { name: "open", help: "Open.", type: "gauge", aggregator: "sum", values: [{ value, labels: {} }] },
  ] as unknown as readonly MetricValues[];

test("of a worker that has ended, counts are kept and states are not", async () => {
  const rounds = new MetricsRounds();
  rounds.report(1, 0, [...counted(10), ...gauge(7)]);
  await rounds.end(1);
  const all = await rounds.collect([2], (worker, round) => rounds.report(worker, round, gauge(1)));
  expect(all).toMatchObject([
    [{ name: "session_workers_ended_total" }, { name: "calls_total", values: [{ value: 10 }] }],
    [{ name: "open", values: [{ value: 1 }] }],
  ]);
});

test("a round waits for every worker that it asked, and for none that has ended", async () => {
  // Time stands still, so that no round ends because its time is over.
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const rounds = new MetricsRounds();
  const asked: (readonly [number, number])[] = [];
  const collect = () => rounds.collect([1, 2, 3], (worker, round) => void asked.push([worker, round]));
  const [first, second] = [collect(), collect()];
  let isOver = false;
  void first.then(() => {
    isOver = true;
  });
  expect(asked).toEqual([1, 2].flatMap((round) => [1, 2, 3].map((worker) => [worker, round])));
  rounds.report(1, 1, counted(1));
  rounds.report(2, 1, counted(2));
  // A report of another round does not complete this one.
  rounds.report(3, 2, counted(3));
  await Promise.resolve();
  expect(isOver).toBe(false);
  await rounds.end(3);
  const [ended, ...live] = await inTime("the round whose last worker has ended", first);
  expect(ended?.find(({ name }) => name === "calls_total")).toMatchObject({ values: [{ value: 3 }] });
  expect(live).toEqual([counted(1), counted(2)]);
  rounds.report(1, 2, counted(4));
  rounds.report(2, 2, counted(5));
  expect((await inTime("the second round", second)).slice(1)).toEqual([counted(4), counted(5)]);
});

test("of a worker that does not report in time, the last report is used", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const rounds = new MetricsRounds();
  rounds.report(1, 0, counted(1));
  rounds.report(2, 0, counted(2));
  const all = rounds.collect([1, 2], (worker, round) => worker === 1 && rounds.report(1, round, counted(8)));
  await vi.advanceTimersByTimeAsync(5_000);
  const [, ...reports] = await all;
  expect(reports).toEqual([counted(8), counted(2)]);
  // The late report is kept for the next round, and completes nothing.
  rounds.report(2, 1, counted(9));
  const [, ...later] = await rounds.collect([1], (worker, round) => rounds.report(worker, round, counted(8)));
  expect(later).toEqual([counted(8), counted(9)]);
});

test("ends that nobody asked for are counted by cause, from none", async () => {
  const rounds = new MetricsRounds();
  const ends = async () => {
    const [ended = []] = await rounds.collect([1], (worker, round) => rounds.report(worker, round, []));
    return ended.find(({ name }) => name === "session_workers_ended_total")?.values;
  };
  const counts = (stalled: number, other: number) => [
    { labels: { cause: "stalled" }, value: stalled },
    { labels: { cause: "ended" }, value: other },
  ];
  expect(await ends()).toEqual(counts(0, 0));
  await Promise.all([rounds.end(1, "stalled"), rounds.end(2, "ended"), rounds.end(undefined, "ended"), rounds.end(3)]);
  expect(await ends()).toMatchObject(counts(1, 2));
});
