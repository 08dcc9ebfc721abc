/**
 * Random mutants of the source, each against the tests that are to notice: `npm run test:mutation`.
 *
 *   --count 20            how many valid mutants to judge
 *   --seed 1              which ones: the same seed picks the same mutants of the same source
 *   --rooms session,api   in which rooms (all)
 *   --workers 2           how many at once
 *   --state FILE          where results are kept, one JSON line each; a run goes on where the last one stopped
 *   --recheck             judge survivors of the state again (after tests were added)
 *
 * A mutant that does not type-check is not valid and not counted; nor is one that test/mutation/equivalent.ts excuses.
 */
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { applied } from "./change.ts";
import { EQUIVALENT } from "./equivalent.ts";
import { luaMutants } from "./lua-mutants.ts";
import { type Mutant, type Result, report } from "./report.ts";
import { ROOMS } from "./rooms.ts";
import { typescriptMutants } from "./typescript-mutants.ts";
import { openWorker } from "./worker.ts";

const ROOT = join(import.meta.dirname, "../..");
const { values } = parseArgs({
  options: {
    count: { type: "string", default: "20" },
    seed: { type: "string", default: "1" },
    rooms: { type: "string", default: [...new Set(ROOMS.map(({ name }) => name))].join(",") },
    workers: { type: "string", default: "2" },
    state: { type: "string" },
    recheck: { type: "boolean", default: false },
  },
});
const count = Number(values.count);
const state = values.state ?? join(tmpdir(), `mutation-${values.seed}.jsonl`);

/** Uniform numbers in [0, 1) from a seed (mulberry32). */
function randomFrom(seed: number): () => number {
  let a = seed >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), a | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

function allMutants(): Mutant[] {
  const wanted = new Set(values.rooms.split(","));
  const files = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" }).map((name) => `src/${name}`);
  return ROOMS.filter(({ name }) => wanted.has(name)).flatMap((room) =>
    files
      .filter((file) => room.files.test(file))
      .sort()
      .flatMap((file) => {
        const text = readFileSync(join(ROOT, file), "utf8");
        const changes = file.endsWith(".lua") ? luaMutants(text) : typescriptMutants(text, file);
        return changes.map((change): Mutant => {
          const line = text.slice(0, change.start).split("\n").length;
          const before = text.slice(change.start, change.end);
          const source = text.split("\n")[line - 1]?.trim() ?? "";
          return { room: room.name, file, line, source, before, text: applied(text, change), ...change };
        });
      }),
  );
}

function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const order = [...items];
  for (let at = order.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1));
    [order[at], order[other]] = [order[other] as T, order[at] as T];
  }
  return order;
}

/** What names a mutant while other lines of its file change. */
const nameOf = (mutant: Pick<Mutant, "file" | "source" | "before" | "replacement">) =>
  [mutant.file, mutant.source, mutant.before, mutant.replacement].join("\n");

const results = new Map<string, Result>();
if (existsSync(state)) {
  for (const line of readFileSync(state, "utf8").split("\n").slice(0, -1)) {
    const result = JSON.parse(line) as Result;
    results.set(nameOf(result), result);
  }
}
mkdirSync(dirname(state), { recursive: true });

const excused = new Map(
  EQUIVALENT.map((one) => [[one.file, one.source, one.before, one.replacement].join("\n"), one.reason]),
);
const order = shuffled(allMutants(), randomFrom(Number(values.seed)));
const judged: Result[] = [];
let next = 0;

async function work() {
  const worker = openWorker(ROOT);
  try {
    while (judged.length < count && next < order.length) {
      const mutant = order[next++] as Mutant;
      const name = nameOf(mutant);
      if (excused.has(name)) continue;
      let result = results.get(name);
      if (result === undefined || (values.recheck && result.outcome === "survived")) {
        const { text: _, ...described } = mutant;
        result = { ...described, ...(await worker.judge(mutant)) };
        appendFileSync(state, `${JSON.stringify(result)}\n`);
        if (result.outcome !== "invalid") {
          process.stderr.write(
            `${result.outcome.padEnd(9)} ${mutant.file}:${mutant.line} ${mutant.kind} ${result.by ?? ""} ${result.seconds} s\n`,
          );
        }
      }
      if (result.outcome !== "invalid") judged.push(result);
    }
  } finally {
    worker.close();
  }
}

for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

await Promise.all(Array.from({ length: Number(values.workers) }, work));
process.stdout.write(report(judged, { seed: values.seed, mutants: order.length }));
