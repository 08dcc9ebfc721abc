/**
 * `npm run test:busy -- [paths]`: runs tests beside busy loops, which may slow the tests down but must not make them fail. `LOOPS` is the
 * number of loops per core (4 by default), and `TIMES` how often the tests run (once by default). The first failure ends the run.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";
import { startBusyLoops } from "./loops.ts";

const FOLDERS = [
  "test/service/composition/",
  "test/service/store/",
  "test/verifier/",
  "test/service/cli/",
  "test/browser/",
];
const { LOOPS = String(4 * availableParallelism()), TIMES = "1" } = process.env;
const given = process.argv.slice(2);
const paths = given.length > 0 ? given : FOLDERS;

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
