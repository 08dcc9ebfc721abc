/** The options of every command that calls the admin API. */
import { type Command, InvalidArgumentError, Option } from "commander";
import { DAY_MS, duration } from "../../config/values.ts";
import { CALL_EXIT_CODES } from "../context.ts";

export type ConnectionOptions = {
  readonly url?: string;
  readonly tokenFile?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
};

/** The options that `addCall` gives to a command. */
export type CallOptions = ConnectionOptions & { readonly json?: boolean };

export const CONNECTION_HELP = `The token is read from --token-file or ADMIN_TOKEN; for a service on this machine also from ADMIN_TOKENS or
the file admin-token in DATA_DIR.`;

export const GROUP_HELP = `${CONNECTION_HELP}
${CALL_EXIT_CODES}`;

/** Adds a command that calls the admin API, with the options and the help text of all these commands. */
export function addCall(group: Command, name: string, description: string, help = ""): Command {
  return addConnectionOptions(group.command(name).description(description))
    .option("--json", "for programs: the messages of the API as JSON")
    .addHelpText("after", `\n${help}${GROUP_HELP}`);
}

export function addConnectionOptions(command: Command): Command {
  return command
    .option("--url <url>", "the admin API (otherwise ADMIN_URL, or http://127.0.0.1:8081 by ADMIN_HOST and ADMIN_PORT)")
    .option("--token-file <path>", "a file with an admin token; - is standard input")
    .option("--ca <path>", "PEM of the authority that signed the service's certificate")
    .option("--cert <path>", "PEM of a client certificate, together with --key")
    .option("--key <path>", "PEM of its private key");
}

/** An option of commands that make a call for each item of a list (sessions/leftovers.ts). */
export const retryOption = () =>
  new Option(
    "--retry-for <duration>",
    "how long to try again while the service is unavailable: 10s, 5m; 0 is not at all",
  )
    .default(120_000, "2m")
    .argParser((text) => {
      const parsed = duration(0, DAY_MS)(text);
      if (parsed.ok) return parsed.value;
      throw new InvalidArgumentError(`It ${parsed.reason}.`);
    });
