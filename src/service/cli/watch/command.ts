import type { Command } from "commander";
import { addConnectionOptions, CONNECTION_HELP } from "../admin-api/options.ts";
import { CALL_EXIT_CODES, type Context } from "../context.ts";

export function addWatchCommand(program: Command, context: Context): void {
  const watch = program.command("watch").description("follow the endings of sessions, as verifiers see them");
  addConnectionOptions(watch)
    .option("--new", "only what ends from now on, not what has ended recently")
    .option("--once", "print what has ended recently, and exit")
    .option("--json", "for programs: a line of JSON for each ending")
    .addHelpText(
      "after",
      `\n"Recently" is the life of an access token: an ending is kept until the last one of the session has expired.
When the connection is lost, it is made again, and nothing is missed.

${CONNECTION_HELP}
${CALL_EXIT_CODES}`,
    )
    .action(async (options) => (await import("./run.ts")).watch(context, options));
}
