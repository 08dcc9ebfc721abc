/** Runs test files in a copy of the tree, and records how long they take without a mutant. */
import { readFileSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { HANG_MS } from "../support/patience.ts";
import { type Ended, run } from "./processes.ts";

const RESULTS = ".results.json";
const VITEST = [
  "run",
  "--config",
  "test/vitest.config.ts",
  "--root",
  ".",
  "--project",
  "all",
  "--project",
  "shared",
  "--bail",
  "1",
  "--retry",
  "1",
];
const ONE_WORKER = ["--maxWorkers", "1", "--reporter", "json", "--outputFile", RESULTS];

/** A failed test. `isConfirmed` means that the test failed twice in a row; failures outside of tests are not repeated. */
type Failed = { readonly files: readonly string[]; readonly name: string; readonly isConfirmed: boolean };
/** `failed` is undefined where all tests passed. */
export type Outcome = { readonly hangs: boolean; readonly failed?: Failed | undefined };

/** Runs test files. They are named by their paths, or by the folders that contain them. */
export interface Tests {
  run(files: readonly string[]): Promise<Outcome>;
  /** Runs test files without a mutant, and records how long they take. @returns whether they pass */
  measure(files: readonly string[]): Promise<boolean>;
  /** @returns whether test files pass without a mutant. They run only if that is not yet known */
  pass(files: readonly string[]): Promise<boolean>;
  /** Returns whether a test file has failed without a mutant. */
  isBroken(file: string): boolean;
}

/** Returns how long tests may take. The machine may have become busier since their time was measured. */
export const limitMs = (usualMs = 20_000) => 10_000 + 3 * usualMs;

type Start = (files: readonly string[], limitMs: number) => Promise<Ended>;

export function openTests(root: string, start: Start = startIn(root)): Tests {
  /** How long passing tests took, in ms, whether without a mutant or with one that survived. */
  const usualMs = new Map<string, number>();
  const passing = new Set<string>();
  const broken = new Set<string>();

  async function run(files: readonly string[], limit: number): Promise<Outcome> {
    const { code, timedOut, tookMs, output } = await start(files, limit);
    if (timedOut) return { hangs: true };
    if (code !== 0) {
      const failed = firstFailed(root, join(root, RESULTS));
      return { hangs: false, failed: failed ?? { files, name: output.slice(-300), isConfirmed: false } };
    }
    usualMs.set(files.join(" "), tookMs);
    for (const file of files) passing.add(file);
    return { hangs: false };
  }

  async function measure(files: readonly string[]): Promise<boolean> {
    for (const _ of ["first", "second"]) {
      const { hangs, failed } = await run(files, HANG_MS);
      if (!hangs && failed === undefined) return true;
    }
    if (files.length === 1) broken.add(files[0] as string);
    process.stderr.write(`these tests fail without a mutant and judge none: ${files.join(" ")}\n`);
    return false;
  }

  return {
    run: (files) => run(files, limitMs(usualMs.get(files.join(" ")))),
    measure,
    isBroken: (file) => broken.has(file),
    pass: async (files) => files.every((file) => passing.has(file)) || measure(files),
  };
}

/** Runs the tests in separate processes, so that whatever a mutant breaks ends with them. */
function startIn(root: string): Start {
  const program = join("node_modules", ".bin", "vitest");
  return (files, limit) => run(root, program, [...VITEST, ...ONE_WORKER, ...files], limit);
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
    // A file that was aborted after a failure in another one counts as failed as well, but has no failed test.
    for (const { name, assertionResults } of testResults) {
      const failed = assertionResults.find(({ status }) => status === "failed");
      const file = relative(root, name);
      if (failed !== undefined) return { files: [file], name: `${file} ${failed.fullName}`, isConfirmed: true };
    }
    const failed = testResults.find(({ status }) => status === "failed");
    if (failed === undefined) return undefined;
    const file = relative(root, failed.name);
    return { files: [file], name: `${file} (does not load)`, isConfirmed: false };
  } catch {
    return undefined;
  }
}
