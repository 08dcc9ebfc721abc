import { availableParallelism } from "node:os";
import { configDefaults, defineConfig } from "vitest/config";
import { LongestFirst } from "./support/longest-first.ts";
import { HANG_MS, PATIENCE_MS } from "./support/patience.ts";

/** A container and a bare machine have namespaces of their own, which only root may make. */
const NEED_ROOT = process.getuid?.() === 0 ? [] : ["test/container/container.test.ts", "test/bare/bare.test.ts"];

/** Files of the long form, which use the package registry: `npm run test:packages`. */
const LONG_FORMS =
  process.env.PACKAGES === "long" ? [] : ["test/packages/ranges.test.ts", "test/release/release-whole.test.ts"];

/**
 * The rooms whose tests leave nothing behind in their process: many files share one. A process of its own costs a file half a second
 * of CPU time, since it loads the modules again.
 */
const SHARED = [
  ...[
    "api",
    "client",
    "config",
    "connect-opentelemetry",
    "files",
    "grpc-health",
    "grpc-reflection",
    "http",
    "listener",
  ],
  ...["mutation", "net", "protoc-gen-http", "protoc-gen-openapi", "protoc-gen-rules", "status-list"],
  ...["tokens", "browser/simulation"],
].map((room) => `test/${room}/**/*.test.ts`);

/** What the Redis store and the doctor need of their server: these tests run on Valkey too. */
const ON_VALKEY = [
  ...["contract", "cluster-f", "memory", "permissions", "replicas", "rotate-script", "schema", "sentinel", "unfit"].map(
    (name) => `test/store/redis/${name}*.test.ts`,
  ),
  "test/doctor/*.test.ts",
  "test/cli/redis-acl.test.ts",
];

/** What the services of both kinds of tests emit is searched for credentials. */
const globalSetup = ["test/support/emissions/collect.ts", "test/support/bundle.ts"];

export default defineConfig({
  test: {
    reporters: ["default", "./test/support/summary.ts"],
    setupFiles: "./test/support/clean-up.ts",
    testTimeout: HANG_MS,
    hookTimeout: HANG_MS,
    // Most tests wait for the processes that they started, so some workers more than cores halve the time of a run.
    maxWorkers: availableParallelism() + 4,
    expect: { poll: { timeout: PATIENCE_MS } },
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
          env: { REDIS_SERVER: "valkey-server" },
          globalSetup,
          sequence: { groupOrder: 0 },
        },
      },
      {
        // The search for credentials runs after all other tests, over what their services emitted.
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
