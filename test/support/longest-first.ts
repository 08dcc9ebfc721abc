/** The order of test files: those that take longest begin first, so that no run ends with one of them alone. */
import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Short files that take half a minute and more. On a machine without results of an earlier run, the order is that of sizes. */
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
