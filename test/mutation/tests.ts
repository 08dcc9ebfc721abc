/** Runs test files in a copy of the tree, and knows how long they take there when nothing is wrong. */
import { readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { run } from "./processes.ts";

const RESULTS = ".results.json";
const VITEST = ["run", "--config", "test/vitest.config.ts", "--root", ".", "--project", "all", "--bail", "1"];
const ONE_WORKER = ["--maxWorkers", "1", "--reporter", "json", "--outputFile", RESULTS];

type Failed = { readonly file: string; readonly name: string };
/** `failed` is undefined where all tests passed. */
export type Outcome = { readonly hangs: boolean; readonly failed: Failed | undefined };

export interface Tests {
  run(files: readonly string[], limitMs: number): Promise<Outcome>;
  /** @returns how long these tests take without a mutant, ms; undefined when they fail even so */
  measure(files: readonly string[]): Promise<number | undefined>;
  measureAgain(files: readonly string[]): Promise<number | undefined>;
}

/** How long tests may take with a mutant that take `usualMs` without: the machine may have become busier since. */
export const limitMs = (usualMs: number) => 10_000 + 3 * usualMs;

export function openTests(root: string): Tests {
  const usual = new Map<string, Promise<number | undefined>>();
  const start = (files: readonly string[], limit?: number) =>
    run(root, join("node_modules", ".bin", "vitest"), [...VITEST, ...ONE_WORKER, ...files], limit);

  async function measureNow(files: readonly string[]): Promise<number | undefined> {
    for (const _ of ["first", "second"]) {
      const { code, tookMs } = await start(files);
      if (code === 0) return tookMs;
    }
    process.stderr.write(`these tests fail without a mutant and judge none: ${files.join(" ")}\n`);
    return undefined;
  }
  const measureAgain = (files: readonly string[]) => {
    const measured = measureNow(files);
    usual.set(files.join(" "), measured);
    return measured;
  };
  return {
    async run(files, limit) {
      const { code, timedOut, output } = await start(files, limit);
      if (timedOut) return { hangs: true, failed: undefined };
      if (code === 0) return { hangs: false, failed: undefined };
      const failed = firstFailed(root, join(root, RESULTS));
      return { hangs: false, failed: failed ?? { file: files[0] as string, name: output.slice(-300) } };
    },
    measure: (files) => usual.get(files.join(" ")) ?? measureAgain(files),
    measureAgain,
  };
}

type TestResults = {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
};

function firstFailed(root: string, path: string): Failed | undefined {
  try {
    const { testResults } = JSON.parse(readFileSync(path, "utf8")) as TestResults;
    rmSync(path);
    // A file that was given up after the first failure counts as failed as well, without a failed test.
    for (const { name, assertionResults } of testResults) {
      const failed = assertionResults.find(({ status }) => status === "failed");
      const file = relative(root, name);
      if (failed !== undefined) return { file, name: `${file} ${failed.fullName}` };
    }
    const failed = testResults.find(({ status }) => status === "failed");
    if (failed === undefined) return undefined;
    const file = relative(root, failed.name);
    return { file, name: `${file} (does not load)` };
  } catch {
    return undefined;
  }
}
