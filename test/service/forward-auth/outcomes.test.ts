import { expect, test } from "vitest";
import { Outcomes } from "../../../src/service/forward-auth/outcomes.ts";

test("outcomes are exposed in the text format of Prometheus, with help and type", () => {
  const outcomes = new Outcomes();
  for (const outcome of ["accepted", "absent", "accepted"] as const) outcomes.count(outcome);
  expect(outcomes.exposition(1_500).split("\n")).toEqual([
    expect.stringMatching(/^# HELP forward_auth_checks_total \w/),
    "# TYPE forward_auth_checks_total counter",
    'forward_auth_checks_total{outcome="accepted"} 2',
    'forward_auth_checks_total{outcome="absent"} 1',
    expect.stringMatching(/^# HELP forward_auth_staleness_seconds \w/),
    "# TYPE forward_auth_staleness_seconds gauge",
    "forward_auth_staleness_seconds 1.5",
    "",
  ]);
});

test("a staleness that is not known is infinite", () => {
  expect(new Outcomes().exposition(Number.POSITIVE_INFINITY)).toContain("\nforward_auth_staleness_seconds +Inf\n");
});
