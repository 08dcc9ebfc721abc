import type { Command } from "commander";
import { readCompactJws, readHeader, readPayload } from "../../../platform/jws/compact-jws.ts";
import { addConnectionOptions, CONNECTION_HELP } from "../admin-api/options.ts";
import { CommandError, type Context, EXIT_CODES } from "../context.ts";
import { readToken } from "../input.ts";
import { fields } from "../output/text.ts";
import { moment } from "../output/times.ts";

/** The greatest length of a token, in characters, as for verifiers. */
const MAX_LENGTH = 16_384;

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
    .action((options) => inspectToken(context, options));
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

type Options = { readonly file?: string; readonly json?: boolean };

/** Shows the contents of a token. Nothing is verified. */
async function inspectToken({ env, print, note }: Context, { file, json }: Options): Promise<void> {
  const token = readToken(env, file);
  const described = accessToken(token) ?? (await refreshToken(token));
  if (described === undefined) throw new CommandError("this is neither a JWT nor a refresh token of this service");
  if (json) {
    print(JSON.stringify(described));
    return;
  }
  const { kind, ...parts } = described;
  const entries = Object.values(parts).flatMap((part) => Object.entries(part));
  print(fields([["token", kind], ...entries.map(([name, value]): [string, string] => [name, shown(name, value)])]));
  note("not verified: `session-service token verify` does that");
}

/** Returns the header and the claims of a JWT that has the form which verifiers require. */
function accessToken(token: string) {
  const jws = readCompactJws(token, MAX_LENGTH);
  const [header, claims] = jws === undefined ? [] : [readHeader(jws), readPayload(jws)];
  return header && claims && { kind: "access token (JWT)", header, claims };
}

async function refreshToken(token: string) {
  const { decodeRefreshToken } = await import("../../tokens/refresh-token.ts");
  const decoded = decodeRefreshToken(token);
  if (decoded === undefined) return undefined;
  const { kid, sid, generation, issuedAt } = decoded;
  return { kind: "refresh token", claims: { kid, sid, generation, iat: Math.floor(issuedAt / 1000) } };
}

/** Claims that are times, in seconds. */
const TIMES = new Set(["exp", "iat", "nbf", "auth_time"]);

function shown(name: string, value: unknown): string {
  if (TIMES.has(name) && typeof value === "number" && Math.abs(value) < 1e11) return moment(value * 1000, Date.now());
  return typeof value === "string" ? value : JSON.stringify(value);
}
