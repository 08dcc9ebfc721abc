/** Makes a call for each item of a list, and writes the items that remain unfinished to a file, for the next attempt. */
import { writeFileSync } from "node:fs";
import { errorCode } from "../../../platform/files/error-code.ts";
import { CommandError, type Context, EXIT, usageError } from "../context.ts";
import { readLines, requireOneInput } from "../input.ts";
import { printable } from "../output/text.ts";
import { callForMany, type WorkOutcome } from "./many.ts";

export type WorkOptions = {
  /** For how long calls are retried while none succeeds, in ms. */
  readonly retryFor: number;
  /** The file to which unfinished items are written. */
  readonly left?: string;
};

/** The items of a command, and whether the user gave them as a list. */
type Items = { readonly all: readonly string[]; readonly isList: boolean };

type SubjectOptions = Pick<WorkOptions, "left"> & {
  readonly subject?: string;
  /** The file with the subjects of many users. */
  readonly subjectsFrom?: string;
  readonly tokenFile?: string;
};

/** Returns the subjects that the options of a command name. The list is read before the token. @throws CommandError */
export function subjectsOf({ subject = "", subjectsFrom, left, tokenFile }: SubjectOptions): Items {
  if (left !== undefined && subjectsFrom === undefined) throw usageError("--left needs --subjects-from");
  requireOneInput("subjects", subjectsFrom, tokenFile);
  return subjectsFrom === undefined
    ? { all: [subject], isList: false }
    : { all: readLines(subjectsFrom), isList: true };
}

export async function callForAll<Result>(
  context: Context,
  { all }: Items,
  options: WorkOptions,
  call: (item: string, signal: AbortSignal) => Promise<Result>,
  what = "ending",
): Promise<WorkOutcome<string, Result>> {
  // All items are written first: however this process ends, the file contains every unfinished item.
  writeLeft(options.left, all);
  const interrupted = new AbortController();
  const interrupt = () => interrupted.abort();
  const signals = ["SIGINT", "SIGTERM"] as const;
  for (const signal of signals) process.once(signal, interrupt);
  try {
    const patience = { retryForMs: options.retryFor, signal: interrupted.signal, note: context.note };
    const outcome = await callForMany(what, all, call, patience);
    writeLeft(options.left, outcome.left);
    return outcome;
  } finally {
    for (const signal of signals) process.removeListener(signal, interrupt);
  }
}

/** Ends the command if items were refused or are unfinished, and reports them. @throws CommandError */
export function reportRest(
  context: Context,
  items: Items,
  { left: path, json }: WorkOptions & { readonly json?: boolean },
  { done, refused, left, failure }: WorkOutcome<string, unknown>,
  summary: string,
): void {
  const [first] = refused;
  if (first === undefined && left.length === 0) return;
  const lines = refused.map(({ item, failure: { message } }) =>
    items.isList ? `${printable(item)}: ${message}` : message,
  );
  if (left.length > 0) {
    const cause = failure?.message ?? "interrupted";
    const where = path === undefined ? "" : `: they are in ${path}`;
    lines.push(items.isList ? `${summary}; left: ${left.length} of ${items.all.length}${where}; ${cause}` : cause);
    if (items.isList && path === undefined && !json) for (const item of left) context.print(item);
  }
  const isOnlyRefused = left.length === 0 && done.length === 0;
  const code = failure?.exitCode ?? (isOnlyRefused ? first?.failure.exitCode : undefined);
  throw new CommandError(lines.join("\n"), code ?? EXIT.failed);
}

export const restAsJson = ({ refused, left }: WorkOutcome<string, unknown>, name: string) => ({
  left,
  refused: refused.map(({ item, failure }) => ({ [name]: item, reason: failure.message })),
});

function writeLeft(path: string | undefined, items: readonly string[]): void {
  if (path === undefined) return;
  try {
    writeFileSync(path, items.map((item) => `${item}\n`).join(""), { mode: 0o600 });
  } catch (error) {
    throw new CommandError(`--left: ${path} cannot be written (${errorCode(error)})`);
  }
}
