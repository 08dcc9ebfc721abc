/**
 * Orders the test files. The long ones begin first, so that a run does not end with a single long file. The others come after them by
 * project, because a process is only shared by files that follow each other. Those that share processes come last: they keep the
 * processor busy, so that no core is idle at the end.
 */
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The seconds that the longest files take; `DURATIONS=write npm test` writes them (`test/support/summary.ts`). */
const SECONDS: Readonly<Record<string, number>> = JSON.parse(
  readFileSync(new URL("durations.json", import.meta.url), "utf8"),
);

/** The projects of vitest.config.ts, in the order in which their short files run. */
const PROJECTS = ["all", "valkey", "shared", "leaks"];

/** From how many seconds on a file is long. A process of its own costs the others a good part of their time. */
const LONG_SECONDS = 15;

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const secondsOf = ({ moduleId }: TestSpecification) => SECONDS[relative(process.cwd(), moduleId)] ?? 0;
    const turnOf = (file: TestSpecification) =>
      secondsOf(file) < LONG_SECONDS ? PROJECTS.indexOf(file.project.name) : -1;
    // Files without an entry stay in the order of Vitest: by the durations of an earlier run, or by size.
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => turnOf(a) - turnOf(b) || secondsOf(b) - secondsOf(a));
  }
}
