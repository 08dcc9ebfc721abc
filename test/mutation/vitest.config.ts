import { configDefaults, defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { chosenTarget } from "./targets.ts";

const { tests, leftOut = [] } = chosenTarget();

/** The first test that fails ends the run of a mutant, so the files that took least time in the last run come first. */
class ShortestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const durationOf = (file: TestSpecification) => this.ctx.cache.getTestSpecificationResult(file)?.duration ?? 0;
    return [...files].sort((a, b) => durationOf(a) - durationOf(b));
  }
}

/** For each mutant, StrykerJS runs those of the target's tests that reach the line of the mutant. */
export default defineConfig({
  test: {
    include: tests.map((path) => (path.endsWith(".ts") ? path : `${path}/**/*.test.ts`)),
    exclude: [...configDefaults.exclude, ...leftOut],
    setupFiles: ["./test/support/clean-up.ts", "./test/mutation/first-counterexample.ts"],
    sequence: { sequencer: ShortestFirst },
    // A mutant that makes a test wait for nothing is noticed after this time. A test that is only slow, on a busy machine, is not.
    testTimeout: 30_000,
    hookTimeout: 60_000,
    env: { EVENT_MS: "5000" },
    isolate: false,
  },
});
