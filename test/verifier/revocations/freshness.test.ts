import { expect, test } from "vitest";
import { Freshness } from "../../../src/verifier/revocations/freshness.ts";

/** The local monotonic and wall clocks at the start. The clock of the store starts at 1,000,000. */
const [M, W] = [5_000, 70_000_000];
const followed = () => {
  const freshness = new Freshness();
  for (const at of [0, 500, 1000]) freshness.record(1_000_000 + at, true, M + at + 3, W + at + 3);
  return freshness;
};

test("is infinitely old before the first complete batch", () => {
  const freshness = new Freshness();
  freshness.record(1_000_000, false, M, W);
  expect(freshness.ageMs(M, W)).toBe(Number.POSITIVE_INFINITY);
});

test("counts from the read of the store, relative to the fastest batch", () => {
  const freshness = followed();
  expect(freshness.ageMs(M + 1003, W + 1003)).toBe(0);
  freshness.record(1_001_500, true, M + 3503, W + 3503); // The batch arrives two seconds after the service read its store.
  expect(freshness.ageMs(M + 3503, W + 3503)).toBe(2000);
  expect(freshness.late).toBe(false);
  freshness.record(1_002_000, true, M + 6003, W + 6003);
  expect(freshness.late).toBe(true);
  freshness.restart();
  expect(freshness.late).toBe(false);
  expect(freshness.ageMs(M + 6003, W + 6003)).toBe(4000);
});

test("is not renewed by a batch while the store does not respond", () => {
  const freshness = followed();
  freshness.record(1_001_000, false, M + 9000, W + 9000);
  expect(freshness.ageMs(M + 9000, W + 9000)).toBe(7997);
});

test("grows older while the machine is suspended, also for a batch in flight", () => {
  const freshness = followed();
  expect(freshness.ageMs(M + 1003, W + 61_003)).toBe(60_000);
  freshness.record(1_001_500, true, M + 1503, W + 61_503);
  expect(freshness.ageMs(M + 1503, W + 61_503)).toBe(60_000);
  expect(freshness.late).toBe(true);
});

test("of a service that sends no times counts from the arrival", () => {
  const freshness = new Freshness();
  freshness.record(undefined, true, M, W);
  expect(freshness.ageMs(M + 700, W + 700)).toBe(700);
});

test("of a batch is late beyond three seconds, and not at three seconds", () => {
  const freshness = followed();
  freshness.record(1_001_500, true, M + 4503, W + 4503);
  expect(freshness.late).toBe(false);
  freshness.record(1_001_500, true, M + 4504, W + 4504);
  expect(freshness.late).toBe(true);
});

test("a batch without the store's time does not count as the fastest one", () => {
  const freshness = new Freshness();
  freshness.record(undefined, true, M, W);
  freshness.record(1_000_000, true, M + 1000, W + 1000);
  expect(freshness.ageMs(M + 1500, W + 1400)).toBe(500);
});
