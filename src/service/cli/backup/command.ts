import { type Command, Option } from "commander";
import { type Context, EXIT_CODES } from "../context.ts";

export function addBackupCommands(program: Command, context: Context): void {
  program
    .command("backup")
    .description("copy the embedded store, the key ring and the admin token, also while the service runs")
    .argument("<directory>", "where to: a directory that is empty, or not there")
    .option("--json", "for programs")
    .addHelpText(
      "after",
      `\nRun it with the environment and as the user of the service. The copy is consistent, and as secret as what it
copies: it holds the keys. How to copy Redis: docs/tasks/backup.md.

${EXIT_CODES}`,
    )
    .action(async (directory, options) => (await import("./backup.ts")).backUp(context, directory, options));
  program
    .command("restore")
    .description("put a backup in the place of the embedded store; the service must be stopped")
    .argument("<directory>", "a backup")
    .addOption(
      new Option("--sessions <end|keep>", "end every session of the backup, or keep them: see below")
        .choices(["end", "keep"])
        .makeOptionMandatory(),
    )
    .option("--force", "although there is a store already: it is moved aside, into DATA_DIR/replaced-<time>")
    .option("--json", "for programs")
    .addHelpText(
      "after",
      `\nA backup has nothing of what happened since: sessions that were ended since then are live again, also those of
thieves. "end" logs everybody out, once. "keep" is right only where a mass logout is worse than logouts that
are undone.

${EXIT_CODES}`,
    )
    .action(async (directory, options) => (await import("./restore.ts")).restore(context, directory, options));
}
