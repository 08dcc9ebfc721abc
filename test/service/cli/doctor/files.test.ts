import { expect, test } from "vitest";
import { judgeSpace } from "../../../../src/service/cli/doctor/files.ts";
import { reportOf } from "../../../../src/service/cli/doctor/finding.ts";

const MIB = 1024 * 1024;

test("less free space than 256 MiB is reported", () => {
  const findingsOf = (free: number) => {
    const report = reportOf("embedded store");
    judgeSpace(report, free);
    return report.findings;
  };
  expect(findingsOf(256 * MIB)).toEqual([]);
  const found = "100 MiB are free for DATA_DIR: refreshes get 503 when the disk is full";
  expect(findingsOf(100.5 * MIB)).toMatchObject([{ level: "warning", found, remedy: "free space" }]);
  expect(findingsOf(256 * MIB - 1)).toHaveLength(1);
  expect(findingsOf(MIB)).toMatchObject([{ level: "warning" }]);
  expect(findingsOf(0)).toMatchObject([{ level: "fault", found: expect.stringContaining("is full") }]);
});
