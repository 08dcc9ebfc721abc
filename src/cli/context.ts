/** The environment that every command gets. */
import type { Environment } from "../config/reader.ts";
import type { ExitCode } from "./exit.ts";

export type Context = {
  readonly env: Environment;
  /** Writes lines to standard output: the result of the command. */
  readonly print: (text: string) => void;
  /** Writes lines to standard error: notes beside the result. */
  readonly note: (text: string) => void;
  /** Sets the exit code, unless the command is done. */
  readonly setExitCode: (code: ExitCode) => void;
  /** Runs the service until a signal ends it. */
  readonly serve: () => Promise<void>;
};
