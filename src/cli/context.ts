/** What every command gets. */
import type { Environment } from "../config/reader.ts";
import type { ExitCode } from "./exit.ts";

export type Context = {
  readonly env: Environment;
  /** Writes lines to standard output: what the command was called for. */
  readonly print: (text: string) => void;
  /** Writes lines to standard error: what accompanies it. */
  readonly note: (text: string) => void;
  /** Ends with this code although nothing failed: something was found. */
  readonly setExitCode: (code: ExitCode) => void;
  /** Runs the service, until a signal ends it. */
  readonly serve: () => Promise<void>;
};
