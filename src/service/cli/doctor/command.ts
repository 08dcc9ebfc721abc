import type { Command } from "commander";
import { type Context, EXIT } from "../context.ts";
import { countOf, printable, style } from "../output/text.ts";
import type { Finding } from "./finding.ts";

export function addDoctorCommand(program: Command, context: Context): void {
  program
    .command("doctor")
    .description("check an installation: every finding says what to do")
    .option("--strict", "fail for warnings, too")
    .option("--json", "for programs")
    .addHelpText(
      "after",
      `\nRun it with the environment and as the user of the service, before its start or while it runs. It changes
nothing. It looks at the configuration, the files, the ages of the keys, the certificate, the cookie and the
allowed origins, and at Redis: whether it responds, its version, eviction policy, persistence, replicas, the
rights of its user, its clock. Then it asks the service whether it is ready.

Exit codes: 0 no fault, 1 a fault (with --strict: or a warning), 2 wrong usage.`,
    )
    .action((options) => runDoctor(context, options));
}

const COLORS = { ok: "green", warning: "yellow", fault: "red" } as const;

async function runDoctor(context: Context, options: { strict?: boolean; json?: boolean }): Promise<void> {
  const { env, print, setExitCode } = context;
  const { examine } = await import("./examine.ts");
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
