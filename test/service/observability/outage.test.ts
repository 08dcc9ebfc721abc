import { expect, test } from "vitest";
import { outageLog } from "../../../src/service/observability/reports.ts";

test("an outage is logged at once, again while it lasts, and not with every request", () => {
  const reported: unknown[] = [];
  let now = 0;
  const report = outageLog({ error: (entry: { fault: string }) => void reported.push(entry.fault) }, () => now);
  for (const [at, fault] of [
    [0, "timed out"],
    [1, "timed out"],
    [2, "out of memory"],
    [9_999, "timed out"],
    [10_000, "timed out"],
    [-3_600_000, "timed out"],
  ] as const) {
    now = at;
    report(new Error(fault));
  }
  // The last one came after the clock was set back.
  expect(reported).toEqual(["timed out", "out of memory", "timed out", "timed out"]);
});
