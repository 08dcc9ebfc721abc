#!/usr/bin/env node
/** The command `session-service`. It caches its compiled code at the first run, so that later runs start faster. */
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

// Node opens its inspector on this signal, and whoever reaches the inspector's port then runs code in this process.
process.on("SIGUSR1", () => {});

// The cache is not in the shared temporary directory, where another user could have placed code that this process would run.
enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/compiled", import.meta.url)));

async function serve(): Promise<void> {
  const { run } = await import("./server/run.ts");
  await run(process.env);
}

const [command = "serve", ...more] = process.argv.slice(2);
// To serve, the service does not load the code of the other commands.
if (command === "serve" && more.length === 0) await serve();
else {
  const { runCommandLine } = await import("./cli/run.ts");
  await runCommandLine([command, ...more], process.env, serve);
}
