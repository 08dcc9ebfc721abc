/**
 * Bundles the program, and the module that records what the program emits, once for each run of the tests. If the program starts from its
 * sources, Node resolves, reads and compiles 700 modules, which takes twice the CPU time of a start from the bundle. A whole run starts the
 * program about a thousand times.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Plugin, rolldown } from "rolldown";
import { onExit } from "./on-exit.ts";

const ROOT = join(import.meta.dirname, "../..");
const MAIN = join(ROOT, "src/service/main.ts");
const RECORDER = join(import.meta.dirname, "emissions/record.ts");
/** The bundle is inside `node_modules`, so that it finds the packages that it does not contain. */
const CACHE = join(ROOT, "node_modules/.cache/tests");
const DAY_MS = 86_400_000;

/**
 * Replaces `import.meta.url` and `import.meta.dirname` of each module by the location of its source file, because modules read scripts and
 * pages relative to their source. The entry point keeps its own values: it uses them only to find the directory of compiled code, which is
 * next to the bundle.
 */
const keepPlaces: Plugin = {
  name: "keep-places",
  transform(code, id) {
    if (id === MAIN || !code.includes("import.meta")) return null;
    return code
      .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(id).href))
      .replaceAll("import.meta.dirname", JSON.stringify(dirname(id)));
  },
};

export default async function setup(): Promise<void> {
  if (process.env.PROGRAM_FILE !== undefined) return;
  mkdirSync(CACHE, { recursive: true });
  removeLeftovers();
  const directory = mkdtempSync(join(CACHE, "run-"));
  onExit(() => rmSync(directory, { recursive: true, force: true }));
  const bundle = await rolldown({
    input: [MAIN, RECORDER],
    platform: "node",
    external: ["rolldown"],
    plugins: [keepPlaces],
  });
  await bundle.write({
    dir: join(directory, "program"),
    entryFileNames: "[name].mjs",
    chunkFileNames: "[name]-[hash].mjs",
  });
  await bundle.close();
  process.env.PROGRAM_FILE = join(directory, "program/main.mjs");
  process.env.RECORDER_FILE = join(directory, "program/record.mjs");
  process.env.NODE_COMPILE_CACHE = join(directory, "compiled");
}

/** Removes the files of runs that were killed. */
function removeLeftovers(): void {
  for (const name of readdirSync(CACHE)) {
    const path = join(CACHE, name);
    const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() };
    if (Date.now() - mtimeMs > DAY_MS) rmSync(path, { recursive: true, force: true });
  }
}
