/** A copy of the tree in which one mutant at a time is judged. */
import { execFileSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { endRuns, run } from "./processes.ts";
import type { Mutant, Verdict } from "./report.ts";
import { roomOf } from "./rooms.ts";
import { openTests, type Tests } from "./tests.ts";

/** The compiler only checks the source, because a mutant may break the types of tests. */
const TYPES = {
  extends: "./tsconfig.json",
  compilerOptions: { incremental: true, tsBuildInfoFile: ".types" },
  include: ["src", "gen"],
};
/** The only part of the source with a separate compiler configuration. */
const PAGE = "src/pages/console/page";

/** Copies all files except those that git ignores, and links the installed packages. */
function copyTree(root: string): string {
  const copy = mkdtempSync(join(tmpdir(), "mutation-"));
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
  for (const file of listed
    .toString()
    .split("\0")
    .filter((name) => name !== "" && existsSync(join(root, name)))) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(root, file), join(copy, file));
  }
  const places = ["", ...readdirSync(join(root, "test")).map((name) => join("test", name))];
  for (const place of places) {
    const installed = join(place, "node_modules");
    if (existsSync(join(root, installed))) linkInstalled(join(root, installed), join(copy, installed));
  }
  writeFileSync(join(copy, "tsconfig.mutant.json"), JSON.stringify(TYPES));
  return copy;
}

/**
 * Links each installed package. Links to packages of this tree must point to the source of the copy, because otherwise tests that import
 * them by name would run without the mutant.
 */
export function linkInstalled(installed: string, copy: string): void {
  mkdirSync(copy, { recursive: true });
  for (const entry of readdirSync(installed, { withFileTypes: true })) {
    const [from, to] = [join(installed, entry.name), join(copy, entry.name)];
    if (entry.isSymbolicLink()) symlinkSync(readlinkSync(from), to);
    else if (entry.name.startsWith("@")) linkInstalled(from, to);
    else symlinkSync(from, to);
  }
}

export function openWorker(root: string, maxStages: number) {
  const copy = copyTree(root);
  const tests = openTests(copy);

  /** Runs `act` while the file contains the mutant. */
  async function mutated<T>(mutant: Mutant, act: () => Promise<T>): Promise<T> {
    const path = join(copy, mutant.file);
    const original = readFileSync(path, "utf8");
    writeFileSync(path, mutant.text);
    try {
      return await act();
    } finally {
      writeFileSync(path, original);
    }
  }

  async function typeChecks({ file }: Mutant): Promise<boolean> {
    if (file.endsWith(".lua")) return true;
    const project = file.startsWith(PAGE) ? PAGE : "tsconfig.mutant.json";
    return (await run(copy, join("node_modules", ".bin", "tsc"), ["-p", project])).code === 0;
  }

  async function verdictOf(mutant: Mutant): Promise<Omit<Verdict, "seconds">> {
    if (!(await mutated(mutant, () => typeChecks(mutant)))) return { outcome: "invalid" };
    for (const stage of (roomOf(mutant.file)?.stages ?? []).slice(0, maxStages)) {
      const verdict = await judgeBy(tests, stage, (act) => mutated(mutant, act));
      if (verdict !== undefined) return verdict;
    }
    return { outcome: "survived" };
  }

  const close = () => {
    endRuns();
    rmSync(copy, { recursive: true, force: true });
  };
  process.once("exit", close);
  return {
    /** Judges a mutant: runs the compiler, and then the tests for its group of source files (room), stage by stage. */
    async judge(mutant: Mutant): Promise<Verdict> {
      const startedAt = performance.now();
      return { ...(await verdictOf(mutant)), seconds: Math.round((performance.now() - startedAt) / 1000) };
    },
    close,
  };
}

/**
 * Judges a mutant by one stage of tests. It is killed if a test fails twice that passes without the mutant, so that random failures on a
 * busy machine do not count. It also counts as killed if the tests hang twice, the second time with a newly measured time limit.
 *
 * @returns undefined if the mutant survives the stage
 */
export async function judgeBy(
  tests: Tests,
  stage: readonly string[],
  mutated: <T>(act: () => Promise<T>) => Promise<T>,
): Promise<Omit<Verdict, "seconds"> | undefined> {
  const files = stage.filter((file) => !tests.isBroken(file));
  if (files.length === 0) return undefined;
  let outcome = await mutated(() => tests.run(files));
  if (outcome.hangs) {
    if (!(await tests.measure(files))) return undefined;
    outcome = await mutated(() => tests.run(files));
    if (outcome.hangs) return { outcome: "timeout", by: files.join(" ") };
  }
  const { failed } = outcome;
  if (failed === undefined) return undefined;
  if (!failed.isConfirmed) {
    const again = await mutated(() => tests.run(failed.files));
    if (!again.hangs && again.failed === undefined) return undefined;
  }
  if (await tests.pass(failed.files)) return { outcome: "killed", by: failed.name };
  // Some of the tests fail even without the mutant, so the mutant is judged again by the others.
  return files.some((file) => tests.isBroken(file)) ? judgeBy(tests, files, mutated) : undefined;
}
