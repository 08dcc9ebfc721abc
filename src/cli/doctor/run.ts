import type { Context } from "../context.ts";
import { EXIT } from "../exit.ts";
import { printable } from "../output/printable.ts";
import { style } from "../output/style.ts";
import { countOf } from "../output/table.ts";
import { examine } from "./examine.ts";
import type { Finding } from "./finding.ts";

const COLORS = { ok: "green", warning: "yellow", fault: "red" } as const;

export async function runDoctor(context: Context, options: { strict?: boolean; json?: boolean }): Promise<void> {
  const { env, print, setExitCode } = context;
  const findings: Finding[] = [];
  for await (const finding of examine({ env, clock: Date.now })) {
    findings.push(finding);
    if (!options.json) print(lineOf(finding));
  }
  const count = (level: Finding["level"]) => findings.filter((finding) => finding.level === level).length;
  const [faults, warnings] = [count("fault"), count("warning")];
  const isFailed = faults > 0 || (options.strict === true && warnings > 0);
  if (isFailed) setExitCode(EXIT.failed);
  if (options.json) print(JSON.stringify({ ok: !isFailed, findings }));
  else print(`${countOf(faults, "fault")}, ${countOf(warnings, "warning")}`);
}

function lineOf({ level, check, found, remedy }: Finding): string {
  const line = `${style(COLORS[level], level.padEnd(7))}  ${check.padEnd(14)}  ${printable(found)}`;
  return remedy === undefined ? line : `${line}\n${" ".repeat(25)}→ ${printable(remedy)}`;
}
