/** What StrykerJS mutates in one run, and the tests that may notice. */
type Target = {
  readonly sources: readonly string[];
  readonly tests: readonly string[];
  readonly leftOut?: readonly string[];
};

/**
 * The parts of the sources in which a wrong sign is a wrong logout. The tests call the mutated code in their own process, because a mutant
 * is switched on there. Left out are tests of other processes, of browsers and frameworks, those that change the code's text themselves, searches that
 * take longer than a mutant is worth, and the hook for React, which only a browser runs.
 */
export const TARGETS: Readonly<Record<string, Target>> = {
  session: {
    sources: ["src/service/session/**/*.ts"],
    tests: ["test/service/session", "test/service/tokens/access-token.test.ts"],
    leftOut: [
      "test/service/session/**/*.search.test.ts",
      "test/service/session/rotation/rotation.{theft,mutants,histories,polling,pages,earliest}.test.ts",
    ],
  },
  tokens: { sources: ["src/service/tokens/*.ts"], tests: ["test/service/tokens"] },
  store: {
    sources: ["src/service/store/embedded/*.ts"],
    tests: ["test/service/store/embedded", "test/service/store/{event-expiry,cursors,page}.test.ts"],
    leftOut: ["test/service/store/embedded/{kill,durability,disk-full}.test.ts"],
  },
  verifier: {
    sources: ["src/verifier/**/*.ts", "src/platform/{caches,dpop,jws}/*.ts", "src/platform/net/bearer-token.ts"],
    tests: [
      "test/verifier",
      "test/platform/{caches,dpop,jws}",
      "test/platform/net/bearer-token.test.ts",
      "test/vectors",
    ],
    leftOut: ["test/verifier/real-service.test.ts", "test/platform/jws/known-signatures.test.ts"],
  },
  signals: {
    sources: ["src/service/signals/**/*.ts"],
    tests: ["test/service/signals"],
    leftOut: [
      "test/service/signals/**/*.search.test.ts",
      "test/service/signals/{service,docs,interop,generated-client,third-party-rates,stored}.test.ts",
    ],
  },
  limits: { sources: ["src/service/api/limits/*.ts"], tests: ["test/service/api/limits"] },
  server: {
    sources: ["src/server/*.ts"],
    tests: ["test/server"],
    leftOut: ["test/server/{next,nuxt,sveltekit,fastify-ready,outage,routers}.test.ts"],
  },
  browser: {
    sources: ["src/browser/*.ts", "src/browser/device/*.ts", "!src/browser/react.ts"],
    tests: [
      "test/browser/simulation",
      "test/browser/device",
      "test/browser/{console,realm,redirects,snapshot}.test.ts",
    ],
    leftOut: ["test/browser/simulation/machine.test.ts"],
  },
};

/** Returns the target that the environment names. */
export function chosenTarget(): Target & { readonly name: string } {
  const name = process.env.TARGET ?? "session";
  const target = TARGETS[name];
  if (target === undefined) throw new Error(`there is no target ${name}`);
  return { ...target, name };
}
