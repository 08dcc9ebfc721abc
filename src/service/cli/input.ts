/** Reads the input of a command: secrets and lists come from a file or standard input, never as arguments. */
import { readFileSync, readSync } from "node:fs";
import { errorCode } from "../../platform/files/error-code.ts";
import { readCommandLine } from "../config/command-line.ts";
import type { Environment } from "../config/reader.ts";
import { CommandError, usageError } from "./context.ts";

/** Returns the name of an input in messages; the path `-` is standard input. */
export const inputName = (path: string) => (path === "-" ? "standard input" : path);

/** Reads the text of a file; `-` is standard input. @param option precedes the message of a failure @throws CommandError */
export function readText(path: string, option = ""): string {
  try {
    return path === "-" ? readStandardInput() : readFileSync(path, "utf8");
  } catch (error) {
    throw new CommandError(`${option}${inputName(path)} cannot be read (${errorCode(error)})`);
  }
}

/** Reads all of standard input. Node makes a pipe non-blocking, so there may be nothing to read yet. */
function readStandardInput(): string {
  const chunks: Buffer[] = [];
  const pause = new Int32Array(new SharedArrayBuffer(4));
  for (;;) {
    const chunk = Buffer.allocUnsafe(65_536);
    try {
      const length = readSync(0, chunk);
      if (length === 0) return Buffer.concat(chunks).toString("utf8");
      chunks.push(chunk.subarray(0, length));
    } catch (error) {
      if (errorCode(error) !== "EAGAIN") throw error;
      Atomics.wait(pause, 0, 0, 10);
    }
  }
}

/** Refuses a command that would read both a token and something else from standard input. @throws CommandError */
export function requireOneInput(what: string, path: string | undefined, tokenFile: string | undefined): void {
  if (path === "-" && tokenFile === "-") {
    throw usageError(`standard input has the ${what}: give the token by another way`);
  }
}

/** Reads the token of a command. It is never an argument, because other users of the machine could see it. @throws CommandError */
export function readToken(env: Environment, file: string | undefined): string {
  const token = file === undefined ? (readCommandLine(env).token ?? readText("-")) : readText(file);
  const bare = token.trim().replace(/^Bearer /i, "");
  if (bare === "") throw new CommandError("there is no token to read");
  return bare;
}

/** Reads the lines of a file that are not empty, without spaces around them. @throws CommandError */
export function readLines(path: string): readonly string[] {
  return readText(path)
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "");
}

/** Asks a question on a terminal; returns false if there is no terminal. */
export async function confirm(question: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY) return false;
  const { createInterface } = await import("node:readline/promises");
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return /^y(es)?$/i.test((await terminal.question(`${question} [y/N] `)).trim());
  } finally {
    terminal.close();
  }
}
