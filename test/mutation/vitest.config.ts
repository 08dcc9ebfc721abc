import { configDefaults, defineConfig } from "vitest/config";
import { HANG_MS } from "../support/patience.ts";

/**
 * The tests that run for mutants: those that call the mutated code in their own process, because a mutant is switched on there. Of these,
 * StrykerJS runs for each mutant the ones that reach its line.
 */
const ROOMS = [
  "service/session",
  "service/tokens",
  "service/signals",
  "verifier",
  "client",
  "server",
  "browser/simulation",
];
const PARTS = ["api/limits", "store/embedded", "platform/clock"];

/** Tests of other processes, of browsers and frameworks, and searches that take longer than a mutant is worth. */
const LEFT_OUT = [
  "test/**/*.search.test.ts",
  "test/service/session/rotation.theft.test.ts",
  "test/service/tokens/key-ring.test.ts",
  "test/service/signals/{service,docs,interop,generated-client,third-party-rates}.test.ts",
  "test/verifier/{real-service,known-signatures}.test.ts",
  "test/service/store/embedded/{kill,durability,file}.test.ts",
  "test/client/{processes,session,dpop}.test.ts",
  "test/server/{next,nuxt,react-router,sveltekit,outage,cdn,fastify-ready,routers,application}*.test.ts",
];

export default defineConfig({
  test: {
    include: [...ROOMS, ...PARTS].map((room) => `test/${room}/**/*.test.ts`),
    exclude: [...configDefaults.exclude, ...LEFT_OUT],
    setupFiles: "./test/support/clean-up.ts",
    testTimeout: HANG_MS,
    isolate: false,
  },
});
