import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Command, InvalidArgumentError, Option } from "commander";
import { date } from "../../config/values.ts";
import { addCall, GROUP_HELP, retryOption } from "../admin-api/options.ts";
import type { Context } from "../context.ts";

export function addSessionsCommand(program: Command, context: Context): void {
  const sessions = program
    .command("sessions")
    .description("find, show, end and create sessions")
    .addHelpText("after", `\n${GROUP_HELP}`);
  addReaders(sessions, context);
  const addEnding = (name: string, description: string, help: string) =>
    addCall(sessions, name, description, help)
      .addOption(retryOption())
      .option("--left <path>", "with a list: a file for what is left of it, one a line (otherwise standard output)");
  addEnding(
    "end",
    "end sessions: their refresh tokens are refused at once, their access tokens by every service that follows the feed",
    ENDING_HELP,
  )
    .argument("<session-id...>", "their ids; - reads them from standard input, one a line")
    .action(async (ids, options) => (await import("./end.ts")).endSessions(context, ids, options));
  addEnding("end-all", "end the sessions of a user, of many users, or of everybody", END_ALL_HELP)
    .option("--subject <subject>", "those of this user")
    .option("--except <session-id>", "with --subject: but this one")
    .option("--subjects-from <path>", "those of many users: a file with a subject a line; - is standard input")
    .option("--everyone", "those of everybody")
    .option("--created-before <time>", "with --everyone: only those created before, such as 2027-01-31T12:00:00Z", time)
    .option("--yes", "with --everyone: do not ask")
    .action(async (options) => (await import("./end.ts")).endAllSessions(context, options));
  addUpdate(sessions, context);
  const unbinding = "take the device key from a session: its browser can refresh without it, or register another";
  addCall(sessions, "unbind", unbinding)
    .argument("<session-id>", "its id")
    .action(async (id, options) => (await import("./one.ts")).unbindSession(context, id, options));
  addCreate(sessions, context);
}

const LIST_HELP = `To end what is found:
  session-service sessions list --client-id shop --ids | session-service sessions end -

`;

const EVENTS_HELP = `Events are kept for a bounded time. A session that was neither ended nor refreshed in time expires without one.

`;

function addReaders(sessions: Command, context: Context): void {
  addCall(sessions, "list", "list live sessions, newest first", LIST_HELP)
    .option("--subject <subject>", "of this user")
    .option("--subject-prefix <text>", "of users whose subject begins with this text")
    .option("--client-id <id>", "of this application")
    .addOption(kindOption("of this kind of client"))
    .option("--device <text>", "whose user agent or display name has this text, in upper or lower case")
    .option(
      "--ip-address <address>",
      "of this address, as the login gave it; one that ends in . or : stands for all that begin so",
    )
    .option("--created-after <time>", "created at this time or later, such as 2027-01-31T12:00:00Z", time)
    .option("--created-before <time>", "created before this time", time)
    .option("--limit <count>", "the most sessions to list (default: 100, with --ids all)", count)
    .option("--ids", "print their ids alone, one a line")
    .action(async (options) => (await import("./list.ts")).listSessions(context, options));
  addCall(sessions, "show", "show a live session, or why it is not live any more")
    .argument("<session-id>", "its id, `sid` in its access tokens")
    .action(async (id, options) => (await import("./one.ts")).showSession(context, id, options));
  addCall(sessions, "events", "list what happened to a session, or to those of a user, newest first", EVENTS_HELP)
    .option("--session <session-id>", "to this session, live or not")
    .option("--subject <subject>", "to the last sessions of this user")
    .option("--limit <count>", "the most events to list", count, 100)
    .action(async (options) => (await import("./list.ts")).listEvents(context, options));
}

const KINDS = ["browser", "mobile", "desktop", "cli", "agent", "tv"];
const SCOPES = ["subject", "client_id", "client_kind"];
const ACTIONS = ["end_least_recently_used", "end_oldest", "refuse"];

const kindOption = (description: string) => new Option("--kind <kind>", description).choices(KINDS);

const ENDING_HELP = `What fails because the service is unavailable or limits the rate of calls is tried again, for as long as
--retry-for says after the last call that succeeded. If that is not enough, or on Ctrl-C, the rest of a list is
printed alone on standard output, or is in the file of --left, and the counts are on standard error: give that
list to the same command. What the service refuses is named on standard error, and does not stop the others.

`;

const END_ALL_HELP = `Give exactly one of --subject, --subjects-from and --everyone. Sessions that are created later live.

  session-service sessions end-all --subjects-from users --left users   # again, until it succeeds

${ENDING_HELP}`;

const CREATE_HELP = `For a login that has happened elsewhere, and for tests. The output holds the tokens of the session: whoever
has them is its user.

`;

function addCreate(sessions: Command, context: Context): void {
  addCall(sessions, "create", "create a session, and print its tokens", CREATE_HELP)
    .requiredOption("--subject <subject>", "the user")
    .option("--claim <name=value...>", "claims of its access tokens; a value that is JSON is taken as such")
    .option("--audience <audience...>", "who its access tokens are for (otherwise the first of AUDIENCE)")
    .option("--client-id <id>", "the application")
    .addOption(kindOption("the kind of client"))
    .option("--user-agent <text>", "the device, for display")
    .option("--ip-address <address>", "the device's address, for display")
    .option("--display-name <name>", "the device's name, for display")
    .option("--idle-timeout <duration>", "how long it lives without a refresh: 10s, 5m, 14d")
    .option("--absolute-lifetime <duration>", "how long it lives at most")
    .option("--auth-time <time>", "when the user authenticated: a time, or now")
    .option("--amr <method...>", "how: methods such as pwd, otp, hwk")
    .option("--acr <class>", "the class of that authentication")
    .option("--no-persistent", "its cookies end with the browser")
    .option("--require-device-binding", "its browser must bind it to a key; needs DEVICE_BINDING=on")
    .option("--replaces <session-id>", "the session that this one replaces")
    .option("--max-sessions <count>", "how many sessions the user may have with it, instead of the policies", count)
    .addOption(new Option("--limit-scope <scope>", "which of them count (otherwise all)").choices(SCOPES))
    .addOption(new Option("--when-exceeded <action>", "what happens beyond (otherwise the first)").choices(ACTIONS))
    .option("--actor <subject>", "who uses it in place of the user, such as support")
    .option("--actor-reason <text>", "with --actor: why, such as the number of a ticket")
    .option("--actor-session <session-id>", "with --actor: the actor's own session")
    .option("--end-with-actor", "with --actor-session: it ends when that session ends")
    .action(async (options) => (await import("./create.ts")).createSession(context, options));
}

const UPDATE_HELP = `The claims given replace all that it had. What it says is in the next access token; with --refresh-tokens, those
from before are refused at once by services that follow the feed, and clients refresh them. Nobody is signed out.

  session-service sessions update --subject alice --claim role=reader --refresh-tokens

`;

function addUpdate(sessions: Command, context: Context): void {
  addCall(sessions, "update", "change what a live session says, or those of a user", UPDATE_HELP)
    .argument("[session-id]", "its id; or --subject")
    .option("--subject <subject>", "all sessions that this user has now")
    .option("--claim <name=value...>", "claims of its access tokens; a value that is JSON is taken as such")
    .option("--no-claims", "it has no claims any more")
    .option("--audience <audience...>", "who its access tokens are for")
    .option("--etag <etag>", "only if the session has this etag, as `sessions show` prints it")
    .option("--refresh-tokens", "access tokens from before are stale")
    .action(async (id, options) => (await import("./update.ts")).updateSessions(context, id, options));
}

function count(text: string): number {
  if (/^[1-9]\d{0,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be a whole number from 1 to 999999.");
}

function time(text: string): Timestamp {
  const parsed = date(text);
  if (parsed.ok) return timestampFromMs(parsed.value);
  throw new InvalidArgumentError("It must be a time such as 2027-01-31T12:00:00Z.");
}
