import { readCommandLine } from "../../config/command-line.ts";
import { ConfigError } from "../../config/config.ts";
import type { Environment } from "../../config/reader.ts";
import { CommandError } from "../exit.ts";
import { readText } from "../input.ts";

/** Reads the token of a command. It is never an argument, because other users of the machine could see it. @throws CommandError */
export function readToken(env: Environment, file: string | undefined): string {
  const token = (file === undefined ? (tokenOf(env) ?? readText("-")) : readText(file)).trim();
  const bare = token.replace(/^Bearer /i, "");
  if (bare === "") throw new CommandError("there is no token to read");
  return bare;
}

function tokenOf(env: Environment): string | undefined {
  try {
    return readCommandLine(env).token;
  } catch (error) {
    throw error instanceof ConfigError ? new CommandError(error.message) : error;
  }
}
