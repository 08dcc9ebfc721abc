/** The flags of V8 that the command sets for itself. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { PROGRAM } from "../support/program.ts";
import { scratch } from "../support/service.ts";

/** Reports each flag that is set. */
const HOOK = `import v8 from "node:v8";
import { syncBuiltinESMExports } from "node:module";
v8.setFlagsFromString = (flag) => console.error(flag);
syncBuiltinESMExports();`;

test("a process that serves sets the flags that Node was not given", async () => {
  const given = ["--heap-growing-percent=50", "--import", `data:text/javascript,${encodeURIComponent(HOOK)}`];
  const env = { PATH: process.env.PATH, PORT: "0", ADMIN_PORT: "0", DATA_DIR: join(scratch(), "data") };
  const service = spawn(process.execPath, [...given, PROGRAM], { env, stdio: ["ignore", "pipe", "pipe"] });
  onTestFinished(() => void service.kill("SIGKILL"));
  let reported = "";
  service.stderr.setEncoding("utf8").on("data", (text: string) => {
    reported += text;
  });
  await once(service.stdout, "data");
  const flags = reported.match(/^--.*$/gm) ?? [];
  expect(flags).toContain("--no-maglev");
  expect(flags.filter((flag) => flag.startsWith("--heap-growing-percent"))).toEqual([]);
});
