import type { Command } from "commander";
import { addConnectionOptions, CONNECTION_HELP } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { EXIT_CODES } from "../exit.ts";

const INPUT_HELP = "The token is read from --file, else from the variable TOKEN, else from standard input.";

export function addTokenCommand(program: Command, context: Context): void {
  const token = program.command("token").description("inspect or verify an access token or a refresh token");
  const add = (name: string, description: string) =>
    token
      .command(name)
      .description(description)
      .option("--file <path>", "a file with the token; - is standard input")
      .option("--json", "for programs");
  add("inspect", "print what a token says, without asking anybody whether it is true")
    .addHelpText("after", `\n${INPUT_HELP}\n${EXIT_CODES}`)
    .action(async (options) => (await import("./inspect.ts")).inspectToken(context, options));
  addConnectionOptions(add("verify", "ask whether a token would be accepted now; never rotates a refresh token"))
    .option("--jwks-url <url>", "verify an access token here, with these keys, and ask nobody: needs no admin token")
    .option("--issuer <url>", "with --jwks-url: its issuer (otherwise ISSUER)")
    .option("--audience <audience>", "with --jwks-url: its audience (otherwise the first of AUDIENCE, or the issuer)")
    .addHelpText(
      "after",
      `\nWith --jwks-url a logout is not seen: the keys alone do not show it.
${INPUT_HELP}
${CONNECTION_HELP}
Exit codes: 0 accepted, 1 not accepted or failed, 2 wrong usage, 3 the service does not respond,
4 the admin token is absent, wrong, or lacks a scope.`,
    )
    .action(async (options) => (await import("./verify.ts")).verifyToken(context, options));
}
