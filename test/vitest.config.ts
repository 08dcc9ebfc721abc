import { availableParallelism } from "node:os";
import { configDefaults, defineConfig } from "vitest/config";
import { LongestFirst } from "./support/longest-first.ts";
import { HANG_MS } from "./support/patience.ts";

/** Tests that need root, because they create namespaces. */
const NEED_ROOT = process.getuid?.() === 0 ? [] : ["test/container/container.test.ts", "test/bare/bare.test.ts"];

/** Test files that run only in a long form: they use the package registry (`npm run test:packages`), or compress an image (`test:container`). */
const LONG_FORMS = [
  ...(process.env.PACKAGES === "long" ? [] : ["test/packages/ranges.test.ts", "test/release/release-whole.test.ts"]),
  ...(process.env.CONTAINER === "long" ? [] : ["test/container/gateway.test.ts"]),
];

const inService = (folder: string) => `service/${folder}`;

/**
 * Folders of `test/` whose tests leave nothing behind in their process, so that many files share one. A separate process would cost each
 * file half a second of CPU time for loading the modules again.
 */
const SHARED = [
  ...[
    ...["client", "connect-grpc-health", "connect-grpc-reflection", "connect-http-gateway", "connect-http-routes"],
    ...[
      "connect-opentelemetry",
      "platform",
      "protoc-gen-connect-http",
      "protoc-gen-http-openapi",
      "recipes",
      "verifier",
    ],
    ...["api", "cli", "config", "forward-auth", "observability", "pages"].map(inService),
    ...["session", "signals", "store", "tokens"].map(inService),
    ...["browser/simulation", "deploy", "verifiers"],
  ].map((folder) => `test/${folder}/**/*.test.ts`),
  // This pattern leaves out overload.test.ts. In a process that is shared with other test files, its clients are too slow while busy
  // programs run beside them.
  "test/service/composition/**/!(overload).test.ts",
  "test/server/!(next|sveltekit).test.ts",
  // leaks.test.ts is a project of its own, because it runs last.
  "test/!(leaks).test.ts",
];

/**
 * Tests of what the Redis store and the command `doctor` need from a Redis server. They run on Redis, and again on Valkey: those that show
 * each command and script always, the others in a long form (`npm run test:valkey`).
 */
const ON_VALKEY = [
  ...[
    ...["contract", "rotate-script", "schema", "unfit"],
    ...(process.env.VALKEY === "long"
      ? ["contract-cluster", "cluster-f*", "memory", "permissions", "replicas", "sentinel", "tls-*"]
      : []),
  ].map((name) => `test/service/store/redis/**/${name}.test.ts`),
  ...(process.env.VALKEY === "long" ? ["test/service/cli/doctor/*.test.ts"] : []),
  "test/service/cli/redis-acl.test.ts",
];

/**
 * Modules that prepare a run: one collects what the services under test emit, to search it for credentials; one bundles the program; one
 * makes the directory in which tests build the packages.
 */
const globalSetup = ["test/support/emissions/collect.ts", "test/support/bundle.ts", "test/support/packages.ts"];

export default defineConfig({
  test: {
    reporters: ["default", "./test/support/summary.ts"],
    setupFiles: "./test/support/clean-up.ts",
    testTimeout: HANG_MS,
    hookTimeout: HANG_MS,
    // Most tests wait for processes that they have started, so more workers than cores halve the duration of a run.
    maxWorkers: availableParallelism() + 4,
    sequence: { sequencer: LongestFirst },
    projects: [
      {
        extends: true,
        test: {
          name: "all",
          include: ["test/**/*.test.ts"],
          exclude: [...configDefaults.exclude, "test/leaks.test.ts", ...NEED_ROOT, ...LONG_FORMS, ...SHARED],
          globalSetup,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: "shared", include: SHARED, isolate: false, globalSetup, sequence: { groupOrder: 0 } },
      },
      {
        extends: true,
        test: {
          name: "valkey",
          include: ON_VALKEY,
          isolate: false,
          env: { REDIS_SERVER: "valkey-server" },
          globalSetup,
          sequence: { groupOrder: 0 },
        },
      },
      {
        // After all other tests, the output of their services is searched for credentials.
        extends: true,
        test: {
          name: "leaks",
          include: ["test/leaks.test.ts"],
          globalSetup: "test/support/emissions/collect.ts",
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
});
