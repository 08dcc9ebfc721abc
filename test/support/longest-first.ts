/** Orders the test files. Those that take longest begin first, so that a run does not end with a single long file. */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/**
 * Test files with little text that nevertheless run for half a minute or more. Without the durations of an earlier run, Vitest orders files
 * by size, and these would begin too late.
 */
const LONG = [
  ...["bare/bare", "packages/packages", "server-kit/next", "server-kit/sveltekit", "browser/cookie-scopes"],
  ...["store/redis/contract-cluster", "store/redis/records-cluster", "faults/faults", "runtimes/command-line"],
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isLong = ({ moduleId }: TestSpecification) => LONG.some((name) => moduleId.endsWith(`/test/${name}.test.ts`));
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}
