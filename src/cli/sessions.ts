/** `session-service sessions …`: sees and ends sessions through the admin API. */
import { type Command, InvalidArgumentError } from "commander";
import { addConnectionOptions, CONNECTION_HELP } from "./admin-api/options.ts";
import type { Context } from "./context.ts";
import { CALL_EXIT_CODES } from "./exit.ts";

const HELP = `${CONNECTION_HELP}
${CALL_EXIT_CODES}`;

export function addSessionsCommand(program: Command, context: Context): void {
  const sessions = program
    .command("sessions")
    .description("find, show, end and create sessions")
    .addHelpText("after", `\n${HELP}`);
  const add = (name: string, description: string, help = "") =>
    addConnectionOptions(sessions.command(name).description(description))
      .option("--json", "for programs: the messages of the API as JSON")
      .addHelpText("after", `\n${help}${HELP}`);

  add("list", "list live sessions, newest first")
    .requiredOption("--subject <subject>", "of this user")
    .option("--limit <count>", "the most sessions to list", count, 100)
    .action(async (options) => (await import("./sessions/list.ts")).listSessions(context, options));
  add("show", "show a live session")
    .argument("<session-id>", "its id, `sid` in its access tokens")
    .action(async (id, options) => (await import("./sessions/show.ts")).showSession(context, id, options));
  add(
    "end",
    "end sessions: their refresh tokens are refused at once, their access tokens by every service that follows the feed",
  )
    .argument("<session-id...>", "their ids; - reads them from standard input, one a line")
    .action(async (ids, options) => (await import("./sessions/end.ts")).endSessions(context, ids, options));
  add("end-all", "end the sessions of a user, of many users, or of everybody", END_ALL_HELP)
    .option("--subject <subject>", "those of this user")
    .option("--except <session-id>", "with --subject: but this one")
    .option("--subjects-from <path>", "those of many users: a file with a subject a line; - is standard input")
    .option("--everyone", "those of everybody")
    .option("--created-before <time>", "with --everyone: only those created before, such as 2027-01-31T12:00:00Z", time)
    .option("--yes", "with --everyone: do not ask")
    .action(async (options) => (await import("./sessions/end-all.ts")).endAllSessions(context, options));
  addCreate(add, context);
}

const END_ALL_HELP = `Give exactly one of --subject, --subjects-from and --everyone. Sessions that are created later live.

`;

const CREATE_HELP = `For a login that has happened elsewhere, and for tests. The output holds the tokens of the session: whoever
has them is its user.

`;

function addCreate(add: (name: string, description: string, help?: string) => Command, context: Context): void {
  add("create", "create a session, and print its tokens", CREATE_HELP)
    .requiredOption("--subject <subject>", "the user")
    .option("--claim <name=value...>", "claims of its access tokens; a value that is JSON is taken as such")
    .option("--audience <audience...>", "who its access tokens are for (otherwise the first of AUDIENCE)")
    .option("--client-id <id>", "the application")
    .option("--user-agent <text>", "the device, for display")
    .option("--ip-address <address>", "the device's address, for display")
    .option("--display-name <name>", "the device's name, for display")
    .option("--idle-timeout <duration>", "how long it lives without a refresh: 10s, 5m, 14d")
    .option("--absolute-lifetime <duration>", "how long it lives at most")
    .option("--auth-time <time>", "when the user authenticated: a time, or now")
    .option("--amr <method...>", "how: methods such as pwd, otp, hwk")
    .option("--acr <class>", "the class of that authentication")
    .option("--replaces <session-id>", "the session that this one replaces")
    .action(async (options) => (await import("./sessions/create.ts")).createSession(context, options));
}

function count(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number from 1 to 999999.");
}

function time(text: string): string {
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(Date.parse(text))) return new Date(text).toISOString();
  throw new InvalidArgumentError("It must be a time such as 2027-01-31T12:00:00Z.");
}
