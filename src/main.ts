#!/usr/bin/env node
/** The command `session-service`. Keeps the compiled code of its first run, so that every later one is quicker. */
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

// Not in the shared temporary directory, where another user could have placed code under that name.
enableCompileCache(fileURLToPath(new URL("../node_modules/.cache/compiled", import.meta.url)));

async function serve(): Promise<void> {
  const { run } = await import("./server/run.ts");
  await run(process.env);
}

const [command = "serve", ...more] = process.argv.slice(2);
// The service starts without the code of the other commands.
if (command === "serve" && more.length === 0) await serve();
else {
  const { runCommandLine } = await import("./cli/run.ts");
  await runCommandLine([command, ...more], process.env, serve);
}
