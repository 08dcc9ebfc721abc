import { configDefaults, defineConfig } from "vitest/config";
import { HANG_MS } from "./support/patience.ts";

/** Folders of `test/` whose tests need only `npm ci`: no root, no server, no browser. */
const FOLDERS = [
  ...["service/session", "service/tokens", "service/api", "platform/clock", "platform/net", "browser/simulation"],
  ...["call", "client", "codec", "fetch", "response", "routes"].map((folder) => `connect-http-routes/${folder}`),
];

/** Excludes the long searches, and tests that give files to another user, which only root can do. */
const LEFT_OUT = [
  "test/service/session/**/*.search.test.ts",
  "test/service/session/rotation/rotation.theft.test.ts",
  "test/service/tokens/key-ring.test.ts",
];

export default defineConfig({
  test: {
    include: FOLDERS.map((folder) => `test/${folder}/**/*.test.ts`),
    exclude: [...configDefaults.exclude, ...LEFT_OUT],
    testTimeout: HANG_MS,
    // The tests of these folders leave nothing behind in their process, and loading the modules again costs half a second of CPU time.
    isolate: false,
  },
});
