import { configDefaults, defineConfig } from "vitest/config";
import { chosenRoom } from "./rooms.ts";

const { tests, leftOut = [] } = chosenRoom();

/** Of the room's tests, StrykerJS runs for each mutant the ones that reach its line. */
export default defineConfig({
  test: {
    include: tests.map((path) => (path.endsWith(".ts") ? path : `${path}/**/*.test.ts`)),
    exclude: [...configDefaults.exclude, ...leftOut],
    setupFiles: "./test/support/clean-up.ts",
    // A mutant that makes a test wait for nothing is noticed after this time. A test that is only slow, on a busy machine, is not.
    testTimeout: 60_000,
    hookTimeout: 120_000,
    isolate: false,
  },
});
