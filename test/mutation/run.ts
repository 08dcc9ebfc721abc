/**
 * `npm run test:mutation` makes random mutants of the source, and runs for each the tests that should detect it.
 *
 *   --count 40            how many valid mutants to judge, distributed over the rooms (groups of source files) by size
 *   --least 2             how many mutants to judge at least in each room
 *   --seed 1              the seed of the random choice
 *   --rooms session,api   the rooms to mutate (default: all)
 *   --workers 1           how many mutants to judge at once
 *   --state FILE          where results are kept, one JSON line each; a run goes on where the last one stopped
 *   --stages 9            how many stages of tests to run at most; --recheck runs the other stages later
 *   --recheck             judge again the mutants in FILE that no test detected (after tests were added)
 *   --report              judge nothing, and only print the table of the results in FILE
 *
 * A mutant that does not type-check is not valid and not counted; nor is one that test/mutation/equivalent.ts excuses.
 */
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { applied } from "./change.ts";
import { choose, shares } from "./choice.ts";
import { EQUIVALENT } from "./equivalent.ts";
import { luaMutants } from "./lua-mutants.ts";
import { type Mutant, nameOf, type Result, report } from "./report.ts";
import { ROOMS, roomOf } from "./rooms.ts";
import { typescriptMutants } from "./typescript-mutants.ts";
import { openWorker } from "./worker.ts";

const ROOT = join(import.meta.dirname, "../..");
const { values } = parseArgs({
  options: {
    count: { type: "string", default: "40" },
    least: { type: "string", default: "2" },
    seed: { type: "string", default: "1" },
    rooms: { type: "string", default: [...new Set(ROOMS.map(({ name }) => name))].join(",") },
    workers: { type: "string", default: "1" },
    stages: { type: "string", default: "9" },
    state: { type: "string" },
    recheck: { type: "boolean", default: false },
    report: { type: "boolean", default: false },
  },
});
const state = values.state ?? join(tmpdir(), `mutation-${values.seed}.jsonl`);

function mutantsOf(file: string, room: string): Mutant[] {
  const text = readFileSync(join(ROOT, file), "utf8");
  const changes = file.endsWith(".lua") ? luaMutants(text) : typescriptMutants(text, file);
  return changes.map((change) => {
    const line = text.slice(0, change.start).split("\n").length;
    const before = text.slice(change.start, change.end);
    const source = text.split("\n")[line - 1]?.trim() ?? "";
    return { room, file, line, source, before, text: applied(text, change), ...change };
  });
}

function allMutants(): Mutant[] {
  const wanted = values.rooms.split(",");
  const files = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" }).map((name) => `src/${name}`);
  return files.sort().flatMap((file) => {
    const room = roomOf(file)?.name;
    return room !== undefined && wanted.includes(room) ? mutantsOf(file, room) : [];
  });
}

const results = new Map<string, Result>();
if (existsSync(state)) {
  for (const line of readFileSync(state, "utf8").split("\n").slice(0, -1)) {
    const result = JSON.parse(line) as Result;
    results.set(nameOf(result), result);
  }
}
mkdirSync(dirname(state), { recursive: true });

const excuses = new Set(EQUIVALENT.map(nameOf));
const mutants = allMutants();
const chosen = choose(shares(mutants, { count: Number(values.count), least: Number(values.least), seed: values.seed }));
const judged: Result[] = [];

/** Returns the stored result of a valid mutant. */
function known(mutant: Mutant): Result | undefined {
  const result = results.get(nameOf(mutant));
  if (result === undefined || result.outcome === "invalid") return undefined;
  return { ...result, ...mutant, ...(excuses.has(nameOf(mutant)) && { outcome: "excused" }) };
}

async function judge(mutant: Mutant, worker: ReturnType<typeof openWorker>): Promise<Result> {
  const earlier = results.get(nameOf(mutant));
  if (earlier !== undefined && !(values.recheck && earlier.outcome === "survived")) return earlier;
  const { text: _, ...described } = mutant;
  const result = { ...described, ...(await worker.judge(mutant)) };
  appendFileSync(state, `${JSON.stringify(result)}\n`);
  if (result.outcome !== "invalid") {
    const { outcome, file, line, kind, by = "", seconds } = result;
    process.stderr.write(`${outcome.padEnd(9)} ${file}:${line} ${kind} ${by} ${seconds} s\n`);
  }
  return result;
}

async function work() {
  const worker = openWorker(ROOT, Number(values.stages));
  try {
    for (let next = chosen.next(); next !== undefined; next = chosen.next()) {
      if (excuses.has(nameOf(next.mutant))) {
        judged.push({ ...next.mutant, outcome: "excused", seconds: 0 });
        next.notCounted();
        continue;
      }
      const result = await judge(next.mutant, worker);
      if (result.outcome === "invalid") next.notCounted();
      else judged.push(result);
    }
  } finally {
    worker.close();
  }
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

if (!values.report) await Promise.all(Array.from({ length: Number(values.workers) }, work));
const shown = values.report ? mutants.flatMap((mutant) => known(mutant) ?? []) : judged;
process.stdout.write(report(shown, { seed: values.seed, possible: mutants }));
