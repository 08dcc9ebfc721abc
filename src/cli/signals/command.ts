/** `session-service signals …`: manages the receivers of signals, through the admin API. */
import { type Command, Option } from "commander";
import { addConnectionOptions, CONNECTION_HELP } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { CALL_EXIT_CODES } from "../exit.ts";
import { KIND_NAMES } from "./kinds.ts";

const HELP = `${CONNECTION_HELP}
${CALL_EXIT_CODES}`;

const CREATE_HELP = `A webhook gets a secret unless --secret-file has one. The output holds it this once: the receiver verifies
signals with it.

`;

export function addSignalsCommand(program: Command, context: Context): void {
  const signals = program
    .command("signals")
    .description("list, create, test, pause and delete subscriptions to the ends of sessions (SIGNALS=on)")
    .addHelpText("after", `\n${HELP}`);
  const add = (name: string, description: string, help = "") =>
    addConnectionOptions(signals.command(name).description(description))
      .option("--json", "for programs: the messages of the API as JSON")
      .addHelpText("after", `\n${help}${HELP}`);
  const addOfOne = (name: string, description: string) =>
    add(name, description).argument("<subscription-id>", "its id");

  add("list", "list all subscriptions").action(async (options) =>
    (await import("./list.ts")).listSubscriptions(context, options),
  );
  add("create", "create a subscription, and print its secret", CREATE_HELP)
    .argument("<endpoint>", "the URL that receives")
    .addOption(new Option("--kind <kind>", "the form of its signals").choices(KIND_NAMES).default("webhook"))
    .option("--audience <audience...>", "`aud` of what is signed; required but for a webhook")
    .option("--subject <subject>", "sessions of this user only")
    .option("--client-id <id>", "sessions of this application only")
    .option("--reason <reason...>", "ends for these reasons only, such as logout, expired, revoked_all")
    .option(
      "--secret-file <path>",
      "a file with the secret of the webhook, or for ssf_push the Authorization header; - is standard input",
    )
    .action(async (endpoint, options) => (await import("./create.ts")).createSubscription(context, endpoint, options));
  addOfOne("show", "show a subscription").action(async (id, options) =>
    (await import("./one.ts")).showSubscription(context, id, options),
  );
  addOfOne("test", "send one signal of a session that never existed, also where the subscription is paused").action(
    async (id, options) => (await import("./one.ts")).testSubscription(context, id, options),
  );
  addOfOne("pause", "deliver nothing until it is resumed; signals are kept for SIGNALS_RETENTION").action(
    async (id, options) => (await import("./one.ts")).pauseSubscription(context, id, options),
  );
  addOfOne("resume", "deliver from where delivery stopped").action(async (id, options) =>
    (await import("./one.ts")).resumeSubscription(context, id, options),
  );
  addOfOne("delete", "delete a subscription; what it has not delivered is lost").action(async (id, options) =>
    (await import("./one.ts")).deleteSubscription(context, id, options),
  );
}
