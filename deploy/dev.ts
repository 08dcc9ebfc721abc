/**
 * The development loop, `npm run dev`. It runs the service, which Node restarts when a file of `src/` changes. When a .proto file
 * changes, it generates `gen/` first. Errors are printed, and the next change is tried again. SIGINT stops everything.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { utimesSync, watch } from "node:fs";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";

const ROOT = join(import.meta.dirname, "..");
const MAIN = join(ROOT, "src/service/main.ts");
/** How long changes of .proto files are collected, in ms, because an editor saves a file in several steps. */
const COLLECT_MS = 50;

const children = new Set<ChildProcess>();
let isStopping = false;

/** Runs a program whose output is that of this process. @returns its exit code */
async function run(program: string, ...args: readonly string[]): Promise<number | null> {
  const child = spawn(program, args, { cwd: ROOT, stdio: ["ignore", "inherit", "inherit"] });
  children.add(child);
  const [code] = await once(child, "close");
  children.delete(child);
  return code;
}

let isGenerating = false;
let isStale = false;
async function generate(): Promise<void> {
  isStale = true;
  if (isGenerating) return;
  isGenerating = true;
  while (isStale && !isStopping) {
    await setTimeout(COLLECT_MS);
    isStale = false;
    console.log("A .proto file changed: npm run generate");
    const code = await run("npm", "run", "--silent", "generate");
    // A newer main.ts makes Node restart the service.
    if (code === 0) utimesSync(MAIN, new Date(), new Date());
    else if (!isStopping)
      console.error("Failed to generate: the service runs as before. Waiting for a change of proto/");
  }
  isGenerating = false;
}

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    isStopping = true;
    for (const child of children) child.kill("SIGINT");
  });
}
const contracts = watch(join(ROOT, "proto"), { recursive: true }, (_, file) => {
  if (file?.endsWith(".proto")) void generate();
});
// SIGINT ends the service at once; SIGTERM, which Node sends by default, would wait for its clients.
const watched = [
  "--watch",
  `--watch-path=${join(ROOT, "src")}`,
  "--watch-preserve-output",
  "--watch-kill-signal=SIGINT",
];
const code = await run(process.execPath, ...watched, MAIN);
contracts.close();
process.exitCode = isStopping ? 0 : (code ?? 1);
