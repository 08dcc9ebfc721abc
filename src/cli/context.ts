/** The context that every command gets: its environment and its outputs. */
import type { Environment } from "../config/reader.ts";
import type { ExitCode } from "./exit.ts";

export type Context = {
  readonly env: Environment;
  /** Writes lines to standard output: the result of the command. */
  readonly print: (text: string) => void;
  /** Writes lines to standard error: remarks that are not part of the result. */
  readonly note: (text: string) => void;
  /** Sets the exit code of a command that has not failed but found something. */
  readonly setExitCode: (code: ExitCode) => void;
  /** Runs the service until a signal ends it. */
  readonly serve: () => Promise<void>;
};
