import type { Change } from "./change.ts";

export type Mutant = Change & {
  readonly room: string;
  readonly file: string;
  readonly line: number;
  /** The line of the source that it changes. */
  readonly source: string;
  readonly before: string;
  /** The whole file, changed. */
  readonly text: string;
};

export type Verdict = {
  readonly outcome: "killed" | "timeout" | "survived" | "invalid";
  /** The test that failed. */
  readonly by?: string | undefined;
  readonly seconds: number;
};

export type Result = Omit<Mutant, "text"> & Verdict;

const isKilled = ({ outcome }: Verdict) => outcome === "killed" || outcome === "timeout";
const percent = (part: number, whole: number) => `${whole === 0 ? 0 : ((100 * part) / whole).toFixed(1)} %`;
const quoted = (text: string) => `\`${text.replaceAll(/\s+/g, " ").replaceAll("|", "\\|").slice(0, 80)}\``;

/** Score by room and the survivors, as Markdown. */
export function report(results: readonly Result[], of: { readonly seed: string; readonly mutants: number }): string {
  const lines = [
    `Seed ${of.seed}: ${results.length} valid of ${of.mutants} possible mutants`,
    "",
    "| room | mutants | killed | score |",
    "|---|---|---|---|",
  ];
  const rooms = [...new Set(results.map(({ room }) => room))].sort();
  for (const room of [...rooms, "all"]) {
    const own = results.filter((result) => room === "all" || result.room === room);
    const killed = own.filter(isKilled).length;
    lines.push(`| ${room} | ${own.length} | ${killed} | ${percent(killed, own.length)} |`);
  }
  const survivors = results.filter((result) => !isKilled(result));
  if (survivors.length > 0) lines.push("", "| survivor | change | line |", "|---|---|---|");
  for (const { file, line, before, replacement, kind, source } of survivors) {
    lines.push(`| ${file}:${line} | ${kind}: ${quoted(before)} → ${quoted(replacement)} | ${quoted(source)} |`);
  }
  return `${lines.join("\n")}\n`;
}
