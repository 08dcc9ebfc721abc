import { Command, Option } from "commander";
import { SCOPES } from "../../session/admin-access.ts";
import type { Context } from "../context.ts";
import { EXIT_CODES } from "../exit.ts";
import type { AdminTokenOptions, MakeCredential } from "./run.ts";

const HELP = `The token itself is printed once and stored nowhere; the entry holds its hash.
${EXIT_CODES}`;

export function addAdminTokenCommand(program: Command, context: Context): void {
  const adminToken = program
    .command("admin-token")
    .description("make credentials of the admin API: the entries of ADMIN_TOKENS_FILE")
    .addHelpText("after", `\n${HELP}`);
  const run = async (make: MakeCredential, options: AdminTokenOptions) => {
    const { runAdminToken } = await import("./run.ts");
    context.print(await runAdminToken(make, options));
  };
  const add = (command: Command) => {
    adminToken.addCommand(command.copyInheritedSettings(adminToken).addHelpText("after", `\n${HELP}`));
    return command
      .requiredOption(
        "--name <name>",
        "what the audit log calls the caller: 1 to 64 letters, digits or any of . _ @ : -",
      )
      .addOption(
        new Option("--scope <scope...>", "what the caller may do; may be repeated")
          .choices(SCOPES)
          .makeOptionMandatory(),
      )
      .option(
        "--file <path>",
        "add the entry to this file, made if it is not there; a running service takes it at once",
      );
  };
  add(new Command("create"))
    .description("make a random token, print it once, and print its entry")
    .action((options) => run({ kind: "random" }, options));
  add(new Command("hash"))
    .description("print the entry of a token that you have: it is read from standard input")
    .action((options) => run({ kind: "stdin" }, options));
  add(new Command("certificate"))
    .description("print the entry of a client certificate")
    .requiredOption("--certificate <name>", "the common name, a DNS name or a URI in the certificate")
    .action((options) => run({ kind: "certificate", name: options.certificate }, options));
}
