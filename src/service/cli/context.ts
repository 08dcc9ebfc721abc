/** What every command gets, and the exit codes and errors that end it. */
import type { Environment } from "../config/reader.ts";

export type Context = {
  readonly env: Environment;
  /** Writes lines to standard output: the result of the command. */
  readonly print: (text: string) => void;
  /** Writes lines to standard error: remarks that are not part of the result. */
  readonly note: (text: string) => void;
  /** Sets the exit code of a command that has worked, but whose result needs one, such as a fault that it has found. */
  readonly setExitCode: (code: ExitCode) => void;
  readonly serve: () => Promise<void>;
};

export const EXIT = {
  done: 0,
  /** The command was refused or failed, or found something that needs a remedy. */
  failed: 1,
  usage: 2,
  /** The service, or its store, does not respond, or is unavailable for another reason. */
  unavailable: 3,
  /** The credential is absent, wrong, or lacks a scope. */
  notAllowed: 4,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** The end of every help text that has no own text about exit codes. */
export const EXIT_CODES = "Exit codes: 0 done, 1 refused or failed, 2 wrong usage.";

/** The end of the help texts of commands that call the admin API. */
export const CALL_EXIT_CODES =
  "Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 the service is unavailable, 4 the token is\n" +
  "absent, wrong, or lacks a scope.";

/** Ends the command. Its message is printed on standard error. */
export class CommandError extends Error {
  override readonly name = "CommandError";
  readonly exitCode: ExitCode;
  constructor(message: string, exitCode: ExitCode = EXIT.failed) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** An error of arguments that commander cannot detect. */
export const usageError = (message: string) => new CommandError(`error: ${message}`, EXIT.usage);

type ErrorClass = abstract new (...given: never[]) => Error;

/** Runs a command. Errors of the classes in `refusals` end it with exit code 1 and their message; any other error is a bug. */
export async function withRefusals<T>(refusals: readonly ErrorClass[], run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof Error && refusals.some((refusal) => error instanceof refusal)) {
      throw new CommandError(error.message);
    }
    throw error;
  }
}
