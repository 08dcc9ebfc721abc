/**
 * Mutates the sources of one target (targets.ts), or some of its files, and prints which mutants no test noticed.
 *
 *     npm run mutation -- tokens
 *     npm run mutation -- store src/service/store/embedded/rows.ts
 *
 * A mutant that changes nothing is excused by a line in survivors.txt: file | original code | mutant | reason. Lines that excuse nothing any
 * longer are printed too.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { TARGETS } from "./targets.ts";

type Position = { readonly line: number; readonly column: number };
type Mutant = {
  readonly status: string;
  readonly replacement?: string;
  readonly location: { readonly start: Position; readonly end: Position };
};
type Report = {
  readonly files: Readonly<Record<string, { readonly source: string; readonly mutants: readonly Mutant[] }>>;
};

const LEAST_PERCENT = 95;
const NOTICED: ReadonlySet<string> = new Set(["Killed", "Timeout"]);
const UNNOTICED: ReadonlySet<string> = new Set(["Survived", "NoCoverage"]);
/** StrykerJS has judged the mutant neither way: its run ended in an error that is no failed test. */
const UNJUDGED: ReadonlySet<string> = new Set(["RuntimeError", "CompileError", "Pending"]);

const [target = "session", ...files] = process.argv.slice(2);
if (!Object.hasOwn(TARGETS, target)) throw new Error(`the target must be one of ${Object.keys(TARGETS).join(", ")}`);
const only = files.length === 0 ? [] : ["--mutate", files.join(",")];
const stryker = spawnSync(
  "test/mutation/node_modules/.bin/stryker",
  ["run", "test/mutation/stryker.config.ts", ...only],
  { stdio: "inherit", env: { ...process.env, TARGET: target } },
);
if (stryker.status !== 0) process.exit(1);

const excuses = new Set(
  readFileSync("test/mutation/survivors.txt", "utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
    .map((line) => line.split(" | ").slice(0, 3).join(" | ")),
);
const report = JSON.parse(readFileSync(`node_modules/.cache/mutation/${target}.json`, "utf8")) as Report;
const used = new Set<string>();
const counts = { noticed: 0, excused: 0, unnoticed: 0, unjudged: 0 };
for (const [file, { source, mutants }] of Object.entries(report.files)) {
  for (const mutant of mutants) {
    if (NOTICED.has(mutant.status)) counts.noticed++;
    if (UNJUDGED.has(mutant.status)) counts.unjudged++;
    if (!UNNOTICED.has(mutant.status)) continue;
    const where = mutant.status === "NoCoverage" ? "not reached" : "survived";
    const change = `${file} | ${oneLine(original(source, mutant.location))} | ${oneLine(mutant.replacement ?? "")}`;
    if (excuses.has(change)) {
      counts.excused++;
      used.add(change);
    } else {
      counts.unnoticed++;
      console.log(`${where} at line ${mutant.location.start.line}: ${change}`);
    }
  }
}
for (const excuse of excuses) {
  const [file = ""] = excuse.split(" | ");
  if (Object.hasOwn(report.files, file) && !used.has(excuse)) console.log(`excuses nothing: ${excuse}`);
}
const percent = (100 * counts.noticed) / (counts.noticed + counts.unnoticed + counts.unjudged);
console.log(`${target}: ${percent.toFixed(1)} % noticed`, counts);
if (!(percent >= LEAST_PERCENT)) process.exitCode = 1;

function oneLine(code: string): string {
  return code.replaceAll(/\s+/g, " ").trim();
}

function original(source: string, { start, end }: Mutant["location"]): string {
  const lines = source.split("\n").slice(start.line - 1, end.line);
  // The end is cut first: on a single line, cutting the start would move it.
  lines.push((lines.pop() ?? "").slice(0, end.column - 1));
  lines[0] = (lines[0] ?? "").slice(start.column - 1);
  return lines.join("\n");
}
