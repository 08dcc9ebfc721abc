import { type Command, Option } from "commander";
import { addCall, GROUP_HELP } from "../admin-api/options.ts";
import type { Context } from "../context.ts";

const CREATE_HELP = `A webhook gets a secret unless --secret-file has one. The output holds it this once: the receiver verifies
signals with it.

`;

type Kinds = typeof import("./run.ts")["SUBSCRIPTION_KINDS"];

/** The names of the kinds of subscriptions that the command creates. */
const KIND_NAMES = Object.keys({ webhook: 1, backchannel: 1, ssf_push: 1 } satisfies Record<keyof Kinds, 1>);

export function addSignalsCommand(program: Command, context: Context): void {
  const signals = program
    .command("signals")
    .description("list, create, test, pause and delete subscriptions to the ends of sessions (SIGNALS=on)")
    .addHelpText("after", `\n${GROUP_HELP}`);
  const addOfOne = (name: keyof typeof import("./run.ts").COMMANDS_OF_ONE, description: string) =>
    addCall(signals, name, description)
      .argument("<subscription-id>", "its id")
      .action(async (id, options) => (await import("./run.ts")).COMMANDS_OF_ONE[name](context, id, options));

  addCall(signals, "list", "list all subscriptions").action(async (options) =>
    (await import("./run.ts")).listSubscriptions(context, options),
  );
  addCall(signals, "create", "create a subscription, and print its secret", CREATE_HELP)
    .argument("<endpoint>", "the URL that receives")
    .addOption(new Option("--kind <kind>", "the form of its signals").choices(KIND_NAMES).default("webhook"))
    .option("--audience <audience...>", "`aud` of what is signed; required but for a webhook")
    .option("--signing-alg <algorithm>", "signs its tokens: that of the key ring, or RS256 with SIGNALS_RSA_KEY_FILE")
    .option("--subject <subject>", "sessions of this user only")
    .option("--client-id <id>", "sessions of this application only")
    .option(
      "--event <event...>",
      "session.ended (the default), session.updated (webhooks, ssf), session.created, session.new_device (webhooks)",
    )
    .option("--reason <reason...>", "ends for these reasons only, such as logout, expired, revoked_all")
    .option(
      "--secret-file <path>",
      "a file with the secret of the webhook, or for ssf_push the Authorization header; - is standard input",
    )
    .action(async (endpoint, options) => (await import("./run.ts")).createSubscription(context, endpoint, options));
  addOfOne("show", "show a subscription");
  addOfOne("test", "send one signal of a session that never existed, also where the subscription is paused");
  addOfOne("pause", "deliver nothing until it is resumed; signals are kept for SIGNALS_RETENTION");
  addOfOne("resume", "deliver from where delivery stopped");
  addOfOne("delete", "delete a subscription; what it has not delivered is lost");
}
