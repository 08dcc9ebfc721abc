/** A copy of the tree in which one mutant at a time is judged. */
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import type { Mutant, Verdict } from "./report.ts";
import { ROOMS } from "./rooms.ts";

/** Copied; all else of the tree is of no concern to the tests that judge. */
const PARTS = [
  "src",
  "test",
  "gen",
  "proto",
  "docs",
  "README.md",
  "package.json",
  "tsconfig.json",
  "buf.yaml",
  "buf.gen.yaml",
];
/** A stage that takes longer hangs: the mutant is killed. */
const STAGE_TIMEOUT_MS = 600_000;

const RESULTS = ".results.json";
/** A test that takes longer hangs, ms. The limits of the tests themselves are for machines that do ten other things. */
const MUTANT_HANG_MS = 60_000;
const VITEST = [
  "vitest",
  "run",
  "--config",
  "test/vitest.config.ts",
  "--root",
  ".",
  "--bail",
  "1",
  "--maxWorkers",
  "1",
  "--testTimeout",
  `${MUTANT_HANG_MS}`,
  "--hookTimeout",
  `${MUTANT_HANG_MS}`,
  "--expect.poll.timeout",
  `${0.75 * MUTANT_HANG_MS}`,
];

type Run = { readonly code: number | null; readonly output: string; readonly timedOut: boolean };

export function openWorker(root: string) {
  const copy = mkdtempSync(join(tmpdir(), "mutation-"));
  for (const part of PARTS) cpSync(join(root, part), join(copy, part), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  // Only the source: whether the tests still type-check is not asked.
  const types = {
    extends: "./tsconfig.json",
    compilerOptions: { incremental: true, tsBuildInfoFile: ".types" },
    include: ["src", "gen"],
  };
  writeFileSync(join(copy, "tsconfig.mutant.json"), JSON.stringify(types));

  /** Ends what runs now. */
  let endRun = () => {};
  /** In a process group of its own: what a test has started goes with it. */
  function run(command: string, args: readonly string[]): Promise<Run> {
    const child = spawn(command, args, { cwd: copy, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    }
    let timedOut = false;
    const endGroup = () => {
      try {
        process.kill(-(child.pid as number), "SIGKILL");
      } catch {
        // Nothing is left of it.
      }
    };
    endRun = endGroup;
    const timer = setTimeout(() => {
      timedOut = true;
      endGroup();
    }, STAGE_TIMEOUT_MS);
    return new Promise((resolve) => {
      child.once("exit", (code) => {
        clearTimeout(timer);
        endGroup();
        resolve({ code, output, timedOut });
      });
    });
  }

  const runTests = (paths: readonly string[]) =>
    run("npx", [...VITEST, "--reporter", "json", "--outputFile", RESULTS, ...paths]);

  async function verdictOf(mutant: Mutant): Promise<Omit<Verdict, "seconds">> {
    if (mutant.file.endsWith(".ts")) {
      const types = await run(join("node_modules", ".bin", "tsc"), ["-p", "tsconfig.mutant.json"]);
      if (types.code !== 0) return { outcome: "invalid" };
    }
    const stages = ROOMS.find(({ files }) => files.test(mutant.file))?.stages ?? [];
    for (const stage of stages) {
      const tests = await runTests(stage);
      if (tests.timedOut) return { outcome: "timeout", by: stage.join(" ") };
      if (tests.code === 0) continue;
      const failure = firstFailure(copy, join(copy, RESULTS));
      // A test that fails on a busy machine alone is no kill: it has to fail twice.
      if (failure !== undefined && (await runTests([failure.file])).code === 0) continue;
      return { outcome: "killed", by: failure?.name ?? tests.output.slice(-300) };
    }
    return { outcome: "survived" };
  }

  const close = () => {
    endRun();
    rmSync(copy, { recursive: true, force: true });
  };
  process.once("exit", close);
  return {
    /** Writes the mutant, asks the compiler and then its room's tests, and puts the file back. */
    async judge(mutant: Mutant): Promise<Verdict> {
      const path = join(copy, mutant.file);
      const original = readFileSync(path, "utf8");
      const startedAt = performance.now();
      writeFileSync(path, mutant.text);
      try {
        return { ...(await verdictOf(mutant)), seconds: Math.round((performance.now() - startedAt) / 1000) };
      } finally {
        writeFileSync(path, original);
      }
    },
    close,
  };
}

type TestResults = {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: string;
    readonly assertionResults: readonly { readonly status: string; readonly fullName: string }[];
  }[];
};

type Failure = { readonly file: string; readonly name: string };

function firstFailure(root: string, path: string): Failure | undefined {
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
