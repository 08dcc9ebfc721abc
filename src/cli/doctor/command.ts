import type { Command } from "commander";
import type { Context } from "../context.ts";

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
    .action(async (options) => (await import("./run.ts")).runDoctor(context, options));
}
