import type { Command } from "commander";
import { addCall, GROUP_HELP, retryOption } from "../admin-api/options.ts";
import type { Context } from "../context.ts";

const FORGET_HELP = `Ends the sessions that the users have now, and removes what is stored of them. It cannot be undone. Logins after
it are new sessions, and stay. Backups and log files are not touched.

  session-service subjects forget --subjects-from users --left users   # again, until it succeeds

`;

const EXPORT_HELP = `The live sessions, the events and the signals of the user, as JSON:

  session-service subjects export --subject alice > alice.json

`;

export function addSubjectsCommand(program: Command, context: Context): void {
  const subjects = program
    .command("subjects")
    .description("export and forget what is stored of a user (GDPR articles 15 and 17)")
    .addHelpText("after", `\n${GROUP_HELP}`);
  addCall(subjects, "export", "print what is stored of a user", EXPORT_HELP)
    .requiredOption("--subject <subject>", "the user")
    .action(async (options) => (await import("./run.ts")).exportSubject(context, options));
  addCall(subjects, "forget", "remove what is stored of users", FORGET_HELP)
    .addOption(retryOption())
    .option("--subject <subject>", "this user")
    .option("--subjects-from <path>", "many users: a file with a subject a line; - is standard input")
    .option("--left <path>", "with --subjects-from: a file for what is left of it (otherwise standard output)")
    .option("--yes", "do not ask")
    .action(async (options) => (await import("./run.ts")).forgetSubjects(context, options));
}
