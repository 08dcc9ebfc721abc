import { readCommandLine } from "../../config/command-line.ts";
import type { Environment } from "../../config/reader.ts";
import { CommandError } from "../exit.ts";
import { readText } from "../input.ts";

/** Reads the token of a command. It is never an argument, because other users of the machine could see it. @throws CommandError */
export function readToken(env: Environment, file: string | undefined): string {
  const token = file === undefined ? (readCommandLine(env).token ?? readText("-")) : readText(file);
  const bare = token.trim().replace(/^Bearer /i, "");
  if (bare === "") throw new CommandError("there is no token to read");
  return bare;
}
