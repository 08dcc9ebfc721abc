/**
 * Orders the test files. Those that take longest begin first, so that a run does not end with a single long file. Short files
 * that share processes come last: they keep the processor busy, so that no core is idle at the end.
 */
import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** The seconds that the longest files take; `DURATIONS=write npm test` writes them (`test/support/summary.ts`). */
const SECONDS: Readonly<Record<string, number>> = JSON.parse(
  readFileSync(new URL("durations.json", import.meta.url), "utf8"),
);

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const secondsOf = ({ moduleId }: TestSpecification) => SECONDS[relative(process.cwd(), moduleId)] ?? 0;
    const sharesProcess = ({ project }: TestSpecification) => Number(!project.config.isolate);
    // Files without an entry stay in the order of Vitest: by the durations of an earlier run, or by size.
    const sorted = await super.sort(files);
    return sorted.sort((a, b) => secondsOf(b) - secondsOf(a) || sharesProcess(a) - sharesProcess(b));
  }
}
