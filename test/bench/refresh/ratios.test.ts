import { expect, test } from "vitest";
import { median } from "../../support/median.ts";
import type { Result } from "./plan.ts";
import { type Measured, ratio } from "./ratios.ts";

const round = (rate: number, responses: Record<string, number> = { "200": 10 }): Result => ({
  responses,
  rate,
  seconds: 1,
  p50: 1,
  p99: 1,
  cpu: 1,
});
const measured = (title: string, ...results: Result[]): Measured => ({ title, expected: "200", results });

test("a ratio is the median of the rounds' own: a round that was disturbed disturbs both sides", () => {
  const service = measured("service", round(900), round(90), round(950));
  const floor = measured("floor", round(1000), round(100), round(1000));
  expect(ratio(service, floor, "rate")).toBeCloseTo(0.9);
});

test.each([
  ["503", { "200": 9_999, "503": 1 }, "floor: 1 × 503"],
  ["lost", { "200": 5, lost: 2 }, "floor: 2 × lost"],
  ["no response at all", {}, "floor: no 200"],
])("there is no ratio to a side with %s", (_name, responses, refused) => {
  const service = measured("service", round(1));
  const floor = measured("floor", round(1), round(1, responses as Record<string, number>));
  const only = measured("floor", round(1, responses as Record<string, number>));
  const side = Object.keys(responses).length === 0 ? only : floor;
  expect(ratio(service, side, "rate")).toEqual({ refused });
  expect(ratio(side, service, "rate")).toEqual({ refused });
});

test("the median of an even number lies between the middle two", () => {
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([9, 1, 5])).toBe(5);
});
