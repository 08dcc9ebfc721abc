import type { Change } from "./change.ts";

export type Mutant = Change & {
  readonly room: string;
  readonly file: string;
  readonly line: number;
  /** The line of the source that the mutant changes, trimmed. */
  readonly source: string;
  readonly before: string;
  /** The text of the whole file with the mutant. */
  readonly text: string;
};

export type Verdict = {
  readonly outcome: "killed" | "timeout" | "survived" | "invalid" | "excused";
  /** The test that detected the mutant, because it failed. */
  readonly by?: string | undefined;
  readonly seconds: number;
};

export type Result = Omit<Mutant, "text"> & Verdict;

/** Returns a name that stays the same when other lines of the file change. */
export const nameOf = (mutant: Pick<Mutant, "file" | "source" | "before" | "replacement">) =>
  [mutant.file, mutant.source, mutant.before, mutant.replacement].join("\n");

const percent = (part: number, whole: number) => `${whole === 0 ? 0 : ((100 * part) / whole).toFixed(1)} %`;
const quoted = (text: string) => `\`${text.replaceAll(/\s+/g, " ").replaceAll("|", "\\|").slice(0, 80)}\``;

type Of = { readonly seed: string; readonly possible: readonly { readonly room: string }[] };

/**
 * Returns the score of each group of source files (room), and the mutants that no test detected, as Markdown. A mutant that
 * test/mutation/equivalent.ts excuses counts neither as valid nor as killed.
 */
export function report(results: readonly Result[], { seed, possible }: Of): string {
  const lines = [
    `Seed ${seed}`,
    "",
    "| room | possible | valid | killed | timed out | survived | excused | score |",
    "|---|---|---|---|---|---|---|---|",
  ];
  const rooms = [...new Set(results.map(({ room }) => room))].sort();
  for (const room of [...rooms, "all"]) {
    const isOwn = (one: { readonly room: string }) => room === "all" || one.room === room;
    const own = results.filter(isOwn);
    const count = (wanted: Verdict["outcome"]) => own.filter(({ outcome }) => outcome === wanted).length;
    const [killed, timedOut, survived] = [count("killed"), count("timeout"), count("survived")];
    const valid = killed + timedOut + survived;
    const cells = [room, possible.filter(isOwn).length, valid, killed, timedOut, survived, count("excused")];
    lines.push(`| ${[...cells, percent(killed + timedOut, valid)].join(" | ")} |`);
  }
  const survivors = results.filter(({ outcome }) => outcome === "survived");
  if (survivors.length > 0) lines.push("", "| survivor | change | line |", "|---|---|---|");
  for (const { file, line, before, replacement, kind, source } of survivors) {
    lines.push(`| ${file}:${line} | ${kind}: ${quoted(before)} → ${quoted(replacement)} | ${quoted(source)} |`);
  }
  return `${lines.join("\n")}\n`;
}
