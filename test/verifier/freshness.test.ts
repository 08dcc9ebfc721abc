import { expect, it } from "vitest";
import { Freshness } from "../../src/verifier/freshness.ts";

/** Our clocks are where they want; the store's is at a million. */
const [M, W] = [5_000, 70_000_000];
const followed = () => {
  const freshness = new Freshness();
  for (const at of [0, 500, 1000]) freshness.heard(1_000_000 + at, true, M + at + 3, W + at + 3);
  return freshness;
};

it("knows nothing before everything was told", () => {
  const freshness = new Freshness();
  freshness.heard(1_000_000, false, M, W);
  expect(freshness.age(M, W)).toBe(Number.POSITIVE_INFINITY);
});

it("counts from the reading of the store, as far as batches come sooner", () => {
  const freshness = followed();
  expect(freshness.age(M + 1003, W + 1003)).toBe(0);
  freshness.heard(1_001_500, true, M + 3503, W + 3503); // two seconds on the way
  expect(freshness.age(M + 3503, W + 3503)).toBe(2000);
  expect(freshness.late).toBe(false);
  freshness.heard(1_002_000, true, M + 6003, W + 6003);
  expect(freshness.late).toBe(true);
  freshness.restart();
  expect(freshness.late).toBe(false);
  expect(freshness.age(M + 6003, W + 6003)).toBe(4000);
});

it("is not refreshed by a batch that comes while the store does not answer", () => {
  const freshness = followed();
  freshness.heard(1_001_000, false, M + 9000, W + 9000);
  expect(freshness.age(M + 9000, W + 9000)).toBe(7997);
});

it("grows older in a suspended machine, also by what was on its way then", () => {
  const freshness = followed();
  expect(freshness.age(M + 1003, W + 61_003)).toBe(60_000);
  freshness.heard(1_001_500, true, M + 1503, W + 61_503);
  expect(freshness.age(M + 1503, W + 61_503)).toBe(60_000);
  expect(freshness.late).toBe(true);
});

it("of a service that tells no times is counted from the arrival", () => {
  const freshness = new Freshness();
  freshness.heard(undefined, true, M, W);
  expect(freshness.age(M + 700, W + 700)).toBe(700);
});
