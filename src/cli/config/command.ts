import type { Command } from "commander";
import type { Context } from "../context.ts";

export function addConfigCommand(program: Command, context: Context): void {
  const config = program.command("config").description("check or show the configuration in the environment");
  config
    .command("check")
    .description("find every fault, and what looks like a mistake: misspelt variables, origins that can never work")
    .option("--strict", "fail for what looks like a mistake, too")
    .option("--json", "for programs")
    .addHelpText(
      "after",
      "\nOnly the variables are checked: `session-service doctor` looks at files, certificates and Redis, too.\n" +
        "Exit codes: 0 no fault, 1 a fault (with --strict: or a warning), 2 wrong usage.",
    )
    .action(async (options) => (await import("./run.ts")).checkConfig(context, options));
  config
    .command("show")
    .description("print every variable with its value, and where it comes from; secrets are hidden")
    .option("--set", "only those that are set")
    .option("--json", "for programs")
    .addHelpText("after", "\nExit codes: 0 done, 1 the configuration has a fault, 2 wrong usage.")
    .action(async (options) => (await import("./run.ts")).showConfig(context, options));
}
