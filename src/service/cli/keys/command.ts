/** `session-service keys …`: manages the key ring. It never prints a secret. */
import { Argument, type Command, InvalidArgumentError, Option } from "commander";
import { SIGNING_ALGS } from "../../tokens/jws.ts";
import { type Context, EXIT_CODES } from "../context.ts";
import type { KeysOptions } from "./run.ts";

const HELP = `Ages come from JWKS_MAX_AGE, ACCESS_TOKEN_TTL and SESSION_IDLE_TTL: set them as for the service.
${EXIT_CODES}`;

export function addKeysCommand(program: Command, context: Context): void {
  const keys = program.command("keys").description("manage the key ring").addHelpText("after", `\n${HELP}`);
  const run = async (step: keyof typeof import("./run.ts").STEPS, operands: readonly string[], options: object) => {
    const { runKeys } = await import("./run.ts");
    context.print(await runKeys(context.env, step, operands, options as KeysOptions));
  };
  const add = (name: string, description: string) => {
    const command = keys.command(name).description(description).addHelpText("after", `\n${HELP}`);
    return command.option("--file <path>", "the ring (otherwise KEYS_FILE, or keys.json in DATA_DIR)");
  };
  add("create", "make a key ring; refused when there is one")
    .addOption(algOption("of the keys (otherwise SIGNING_ALGORITHM)"))
    .option("--if-missing", "succeed without a change when there is one: for scripts that run at every start")
    .action((options) => run("create", [], options));
  add("list", "show every key: state, age, what it may do next")
    .addOption(pickUpOption())
    .option("--json", "for programs")
    .action((options) => run("list", [], options));
  add(
    "rotate",
    "let the published key sign, retire the one that signed, publish a new one, and remove retired keys that are no longer needed",
  )
    .addArgument(new Argument("[kind]", "both kinds unless one is named").choices(["signing", "mac"]))
    .addOption(algOption("of the new signing key (otherwise as before)"))
    .option("--force", "rotate although a key is too young: valid tokens may be refused")
    .addOption(pickUpOption())
    .action((kind, options) => run("rotate", kind === undefined ? [] : [kind], options));
  add("remove", "take keys out of the ring")
    .argument("[kid]", "a published, retired or revoked key; without it, all that are no longer needed")
    .addOption(algOption("of a new signing key (otherwise as before)"))
    .option("--force", "remove the key although it is still needed: valid tokens may be refused")
    .addOption(pickUpOption())
    .action((kid, options) => run("remove", kid === undefined ? [] : [kid], options));
  add(
    "revoke",
    "emergency: the keys are not accepted from now on, and a successor signs at once if one did. A signing key: access " +
      "tokens under it are refused. A MAC key: sessions under it must log in again",
  )
    .argument("<kid...>", "the keys; all of them if others have read the ring")
    .addOption(algOption("of a new signing key (otherwise as before)"))
    .addOption(pickUpOption())
    .action((kids, options) => run("revoke", kids, options));
}

const algOption = (which: string) => new Option("--alg <algorithm>", which).choices(SIGNING_ALGS);

const pickUpOption = () =>
  new Option("--pick-up <seconds>", "how long until every instance has a changed ring in force")
    .default("60")
    .argParser((text) => {
      if (/^\d{1,6}$/.test(text)) return text;
      throw new InvalidArgumentError("It must be a number of seconds.");
    });
