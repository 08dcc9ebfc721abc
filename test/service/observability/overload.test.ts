import { expect, test } from "vitest";
import { overloadReport } from "../../../src/service/observability/reports.ts";

test("every refusal is counted, and each cause is logged at once, then every ten seconds with how many there were", () => {
  const lines: unknown[] = [];
  const counted: string[] = [];
  let now = 5;
  const report = overloadReport(
    { warn: (fields: unknown) => void lines.push(fields) } as never,
    { refused: (cause) => void counted.push(cause) },
    () => now,
  );
  for (let time = 0; time < 5; time++) report("store");
  report("event_loop");
  now += 9_999;
  report("store");
  expect(lines).toEqual([
    { event: "overloaded", cause: "store", refused: 1 },
    { event: "overloaded", cause: "event_loop", refused: 1 },
  ]);
  now += 1;
  report("store");
  expect(lines.slice(2)).toEqual([{ event: "overloaded", cause: "store", refused: 6 }]);
  now -= 3_600_000;
  report("store");
  expect(lines).toHaveLength(4);
  expect(counted).toHaveLength(9);
});
