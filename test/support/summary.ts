/**
 * Prints a summary at the end of a run: the results of each directory of tests, those on Valkey, and a plain line for programs that read
 * the log.
 */
import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import type { Reporter, TestModule } from "vitest/node";

type Row = { files: number; tests: number; failed: number; skipped: number; seconds: number };

const emptyRow = (): Row => ({ files: 0, tests: 0, failed: 0, skipped: 0, seconds: 0 });

/** Returns the package, or the folder of the service, that a test file tests: `service/composition` for `test/service/composition/tls.test.ts`. */
const folderOf = (path: string) => /^test\/(service\/[^/]+|[^/]+)\//.exec(path)?.[1] ?? "(top)";

export default class Summary implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    const folders = new Map<string, Row>();
    const total = { ...emptyRow(), failed: unhandled.length };
    for (const module of modules) {
      const folder = module.project.name === "valkey" ? "valkey" : folderOf(relative(process.cwd(), module.moduleId));
      const row = folders.get(folder) ?? emptyRow();
      folders.set(folder, row);
      for (const sum of [row, total]) add(sum, module);
    }
    const text = report(folders, total);
    if (process.env.DURATIONS === "write") writeDurations(modules);
    process.on("exit", () => console.log(text));
  }
}

function add(sum: Row, module: TestModule): void {
  sum.files++;
  sum.seconds += module.diagnostic().duration / 1000;
  // A file that could not be loaded has no tests that could fail, so the file itself counts as a failure.
  if (module.errors().length > 0) sum.failed++;
  for (const test of module.children.allTests()) {
    const { state } = test.result();
    if (state === "passed") sum.tests++;
    else if (state === "failed") sum.failed++;
    else sum.skipped++;
  }
}

/**
 * The least duration, in seconds, with which a test file is listed in durations.json. The order of test files that take less time makes no
 * difference.
 */
const MIN_WRITTEN_SECONDS = 5;

/** Writes the durations by which `longest-first.ts` orders the files. */
function writeDurations(modules: readonly TestModule[]): void {
  const durations = new Map<string, number>();
  for (const module of modules) {
    const path = relative(process.cwd(), module.moduleId);
    const seconds = Math.round(module.diagnostic().duration / 1000);
    // A file that runs on Redis and on Valkey has one entry.
    if (seconds >= MIN_WRITTEN_SECONDS) durations.set(path, Math.max(seconds, durations.get(path) ?? 0));
  }
  const longestFirst = [...durations].sort(([, a], [, b]) => b - a);
  const text = JSON.stringify(Object.fromEntries(longestFirst), undefined, 2);
  writeFileSync(new URL("durations.json", import.meta.url), `${text}\n`);
}

function report(folders: ReadonlyMap<string, Row>, total: Row): string {
  const rows = [...folders].sort(([, a], [, b]) => b.seconds - a.seconds);
  const line = (cells: readonly (string | number)[]) =>
    cells.map((cell, at) => (at === 0 ? String(cell).padEnd(20) : String(cell).padStart(8))).join("");
  return [
    line(["folder", "files", "passed", "failed", "skipped", "seconds"]),
    ...[...rows, ["all", total] as const].map(([name, row]) =>
      line([name, row.files, row.tests, row.failed, row.skipped, row.seconds.toFixed(1)]),
    ),
    `${total.tests} passed, ${total.failed} failed, ${total.skipped} skipped`,
  ].join("\n");
}
