/** The verifier and the HTTP layer in runtimes that have a command line. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { onExit } from "../support/on-exit.ts";
import type { Running } from "./commands.ts";
import { programOf } from "./installed.ts";
import { describeRuntime } from "./must-hold.ts";

const COMMAND_LINE = join(import.meta.dirname, "command-line.ts");

/** Starts the tests of suite.ts in a runtime. Each command is a line of its input, and each result a line of its output. */
function startCommandLine(program: string, ...args: readonly string[]): Running {
  const child = spawn(program, [...args, COMMAND_LINE], { stdio: ["pipe", "pipe", "inherit"] });
  onExit(() => child.kill("SIGKILL"));
  const exited = new Promise((resolve) => child.once("close", resolve));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    async run(command, input) {
      child.stdin.write(`${JSON.stringify({ command, input })}\n`);
      const { value, done } = await lines.next();
      if (done) throw new Error("the runtime has ended");
      return (JSON.parse(value) as { readonly result?: unknown }).result;
    },
    stop() {
      child.stdin.end();
      return exited;
    },
  };
}

const RUNTIMES = [
  { name: "Node", start: () => startCommandLine(process.execPath), isNode: true },
  {
    name: "Deno",
    start: () => startCommandLine(programOf("@deno/*/deno"), "run", "--allow-all", "--no-lock", "--cached-only"),
  },
  { name: "Bun", start: () => startCommandLine(programOf("@oven/*/bin/bun"), "--no-install") },
];
for (const { name, start, isNode = false } of RUNTIMES) {
  for (const live of [{}, { pollIntervalMs: 20 }]) {
    describeRuntime({
      name: `${name}, ${live.pollIntervalMs === undefined ? "with a stream" : "with polls"}`,
      start: async ({ adminUrl }) => ({ running: start(), adminUrl }),
      isNode,
      live,
    });
  }
}
