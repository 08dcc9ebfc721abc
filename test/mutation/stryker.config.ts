import { chosenTarget } from "./targets.ts";

const { name, sources } = chosenTarget();

export default {
  packageManager: "npm",
  plugins: ["@stryker-mutator/vitest-runner"],
  testRunner: "vitest",
  vitest: { configFile: "test/mutation/vitest.config.ts", related: false },
  mutate: sources,
  ignorePatterns: ["/.stryker-tmp", "/dist", "/docs/images", "/examples", "/verifiers", "/deploy", "/test/spring"],
  concurrency: 2,
  // A mutant of code that runs when a module is loaded would need all tests, which take most of the time.
  ignoreStatic: true,
  // Most texts are names that the compiler checks, and the others are messages to people.
  mutator: { excludedMutations: ["StringLiteral"] },
  // A mutant times out after its tests' own time × timeoutFactor + timeoutMS. It is more than the time limit of a test, which costs no new
  // process, and on a busy machine slow tests must not count as noticing it.
  timeoutMS: 45_000,
  timeoutFactor: 2,
  tempDirName: `.stryker-tmp/${name}`,
  // No such file: StrykerJS would rewrite its paths by the API of TypeScript 6, and none of its paths needs that.
  tsconfigFile: "test/mutation/none.json",
  cleanTempDir: "always",
  reporters: ["json", "progress-append-only"],
  jsonReporter: { fileName: `node_modules/.cache/mutation/${name}.json` },
};
