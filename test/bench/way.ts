/**
 * `npm run way` prints the way of a refresh: the files and functions of src/ that run for one refresh over the JSON route, in steady state,
 * by V8's precise coverage. The service runs in this process, once on Redis and once on the embedded store.
 *
 *     npm run way -- [--store redis|embedded] [--json]
 */
import { parseArgs } from "node:util";
import { type Step, type Store, walk } from "./way/walk.ts";

const { values: options } = parseArgs({
  options: { store: { type: "string" }, json: { type: "boolean", default: false } },
});
const stores: readonly Store[] = options.store === undefined ? ["redis", "embedded"] : [options.store as Store];

for (const store of stores) {
  const steps = await walk(store);
  const files = Map.groupBy(steps, ({ file }) => file);
  if (options.json) console.log(JSON.stringify({ store, files: files.size, functions: steps.length }));
  else console.log(`${describe(files)}\n${store}: ${files.size} files, ${steps.length} functions\n`);
}

/** Returns the files by folder, and the functions of each file with their calls per refresh. */
function describe(files: ReadonlyMap<string, readonly Step[]>): string {
  const folders = Map.groupBy(files.keys(), (file) => file.slice(0, file.lastIndexOf("/") + 1));
  const lines: string[] = [];
  for (const [folder, names] of [...folders].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const steps = names.flatMap((name) => files.get(name) ?? []);
    lines.push(`${folder} (${names.length} files, ${steps.length} functions)`);
    for (const name of names) {
      const own = files.get(name) ?? [];
      const text = own.map((step) => `${step.name} ${Number(step.calls.toFixed(2))}`).join(", ");
      lines.push(`  ${name.slice(folder.length)} ${own.length}: ${text}`);
    }
  }
  return lines.join("\n");
}
