#!/usr/bin/env node
/** The command `connect-http-gateway`. */
import { startLean } from "../platform/runtime/lean-start.ts";
import { parseArguments, wantsSmallHeap } from "./arguments.ts";
import { restartWithSmallHeap } from "./small-heap.ts";
import { USAGE } from "./usage.ts";

// Node opens its inspector on this signal, and whoever reaches the inspector's port then runs code in this process.
process.on("SIGUSR1", () => {});

async function run(args: readonly string[]): Promise<void> {
  if (args.length === 0 || args.includes("--help")) {
    process.stdout.write(USAGE);
    return;
  }
  const parsed = parseArguments(args);
  if (wantsSmallHeap(args)) restartWithSmallHeap();
  // The gateway is loaded only now, because a process that `restartWithSmallHeap` replaces would have loaded it for nothing.
  await startLean(async () => {
    const { runGateway } = await import("./run.ts");
    await runGateway(parsed);
  });
}

run(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`connect-http-gateway: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
