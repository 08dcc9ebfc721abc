/**
 * `npm run test:busy -- [paths]`: runs tests beside busy loops, which must change nothing but how long they take.
 *
 * `LOOPS` sets how many (four for each core), `TIMES` how often the tests are run (once). A failure ends it.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { startBusyLoops } from "./loops.ts";

const ROOMS = ["test/server/", "test/store/", "test/verifier/", "test/cli/", "test/browser/"];
const { LOOPS = String(4 * availableParallelism()), TIMES = "1" } = process.env;
const given = process.argv.slice(2);
const paths = given.length > 0 ? given : ROOMS;

const loops = startBusyLoops(Number(LOOPS));
let failed = false;
for (let time = 1; time <= Number(TIMES) && !failed; time++) {
  console.log(`run ${time} of ${TIMES}, beside ${LOOPS} busy loops: ${paths.join(" ")}`);
  const tests = spawn("npx", ["vitest", "run", "--config", "test/vitest.config.ts", "--root", ".", ...paths], {
    stdio: "inherit",
  });
  failed = (await once(tests, "exit"))[0] !== 0;
}
await loops.stop();
process.exitCode = failed ? 1 : 0;
