/** Defines all commands. What is expensive to load is loaded when a command runs. */
import { Command } from "commander";
import { addAdminTokenCommand } from "./admin-token.ts";
import { addBackupCommands } from "./backup/command.ts";
import { addCompletionCommand } from "./completion/script.ts";
import { addConfigCommand } from "./config.ts";
import { type Context, EXIT_CODES } from "./context.ts";
import { addDoctorCommand } from "./doctor/command.ts";
import { addForwardAuthCommand } from "./forward-auth.ts";
import { addKeysCommand } from "./keys/command.ts";
import { addRedisAclCommand } from "./redis-acl.ts";
import { addSessionsCommand } from "./sessions/command.ts";
import { addSignalsCommand } from "./signals/command.ts";
import { addSubjectsCommand } from "./subjects/command.ts";
import { addTokenCommand } from "./token/command.ts";
import { version } from "./version.ts";
import { addWatchCommand } from "./watch/command.ts";

/** The width of the help texts unless the terminal is narrower. The documentation contains the same texts. */
export const HELP_WIDTH = 100;

export function createProgram(
  context: Context,
  width = Math.min(process.stdout.columns ?? HELP_WIDTH, HELP_WIDTH),
): Command {
  const program = new Command("session-service")
    .description("Refreshes and ends the authentication sessions of users. Without a command it runs the service.")
    .version(version(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print the help of a command")
    .helpCommand("help [command]", "print the help of a command")
    .configureHelp({ helpWidth: width })
    .configureOutput({ writeOut: lines(context.print), writeErr: lines(context.note) })
    .showHelpAfterError("(--help explains this command)")
    .exitOverride()
    // Options after the name of a command belong to that command. Otherwise a subject called `-V` would print the version.
    .enablePositionalOptions()
    .addHelpText("after", `\n${PROGRAM_HELP}`);
  program
    .command("serve")
    .description("run the service (the default)")
    .addHelpText("after", `\n${SERVE_HELP}`)
    .action(context.serve);
  addSessionsCommand(program, context);
  addSubjectsCommand(program, context);
  addSignalsCommand(program, context);
  addWatchCommand(program, context);
  addForwardAuthCommand(program, context);
  addTokenCommand(program, context);
  addKeysCommand(program, context);
  addAdminTokenCommand(program, context);
  addConfigCommand(program, context);
  addDoctorCommand(program, context);
  addRedisAclCommand(program, context);
  addBackupCommands(program, context);
  addCompletionCommand(program, context);
  return program;
}

/** Commander ends a text with a line break, and the functions of the context add another one, so the first is removed. */
const lines = (write: (text: string) => void) => (text: string) => write(text.replace(/\n$/, ""));

const PROGRAM_HELP = `The service is configured by environment variables: \`session-service config show\` lists them.

${EXIT_CODES}`;

const SERVE_HELP = `Configured by environment variables: \`session-service config show\` lists them, \`config check\` checks them.
Once it is ready it prints one line of JSON on standard output; its log is on standard error. SIGTERM drains
and ends it, SIGINT ends it at once. Exit codes: 0 ended by a signal, 1 the start was refused.`;
