#!/usr/bin/env node
/** The command `session-service`. It caches its compiled code at the first run, so that later runs start faster. */
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";
import { setFlag, startLean } from "../platform/runtime/lean-start.ts";

/**
 * Flags of V8 for a process that serves. Those that were given to Node take precedence.
 *
 * - Without the middle one of its three compilers, V8 needs 20 MB less, and hot code is optimized nevertheless.
 * - A full garbage collection begins when the heap is three quarters larger than after the last one. By itself, V8 waits for more memory at
 *   first, and soon collects several times as often.
 */
const FLAGS = ["--no-maglev", "--heap-growing-percent=75"];

async function serve(): Promise<void> {
  for (const flag of FLAGS) setFlag(flag);
  await startLean(async () => {
    const { run } = await import("./composition/run.ts");
    await run(process.env);
  });
}

async function main([command = "serve", ...more]: readonly string[]): Promise<void> {
  // To serve, the service does not load the code of the other commands.
  if (command === "serve" && more.length === 0) return serve();
  const { runCommandLine } = await import("./cli/run.ts");
  await runCommandLine([command, ...more], process.env, serve);
}

// Node opens its inspector on this signal, and whoever reaches the inspector's port then runs code in this process.
process.on("SIGUSR1", () => {});

// The cache is not in the shared temporary directory, where another user could have placed code that this process would run.
enableCompileCache(fileURLToPath(new URL("../../node_modules/.cache/compiled", import.meta.url)));

void main(process.argv.slice(2));
