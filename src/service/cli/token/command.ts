import type { Command } from "commander";
import { addConnectionOptions, CONNECTION_HELP } from "../admin-api/options.ts";
import { CommandError, type Context, EXIT_CODES } from "../context.ts";
import { readToken } from "../input.ts";
import { fields } from "../output/text.ts";
import { moment } from "../output/times.ts";

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
type Claims = Readonly<Record<string, unknown>>;

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

/** Decodes the header and the claims of a JWT. */
function accessToken(token: string) {
  const [header, claims, signature, ...more] = token.split(".");
  if (signature === undefined || more.length > 0) return undefined;
  const [head, body] = [jsonOf(header), jsonOf(claims)];
  return head && body && { kind: "access token (JWT)", header: head, claims: body };
}

function jsonOf(part = ""): Claims | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString());
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Claims) : undefined;
  } catch {
    return undefined;
  }
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
