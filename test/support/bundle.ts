/**
 * Bundles the program once for a run of the tests. A start from the sources resolves, reads and compiles 700 modules, which takes
 * twice the CPU time of a start from the bundle; a whole run starts the program about a thousand times.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Plugin, rolldown } from "rolldown";
import { onExit } from "./on-exit.ts";

const ROOT = join(import.meta.dirname, "../..");
const MAIN = join(ROOT, "src/main.ts");
/** The bundle lies below `node_modules`, so that it finds the packages that it does not contain. */
const CACHE = join(ROOT, "node_modules/.cache");

/**
 * Keeps each module's own place, since scripts, pages and workers are read from beside the source. The entry point uses its place
 * for compiled code alone, which belongs beside the bundle.
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
  const directory = mkdtempSync(join(CACHE, "test-"));
  onExit(() => rmSync(directory, { recursive: true, force: true }));
  const bundle = await rolldown({
    input: MAIN,
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
  process.env.NODE_COMPILE_CACHE = join(directory, "compiled");
}
