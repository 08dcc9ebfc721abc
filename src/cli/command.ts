/** What the commands have in common: options, output, exit codes. */
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";

/** The command was called wrongly: its usage is printed, and the exit code is 2. */
export class UsageError extends Error {}

/** @throws UsageError for an option that there is not, or without its value */
export function readOptions<const Options extends ParseArgsOptionsConfig>(args: string[], options: Options) {
  try {
    return parseArgs({ args, allowPositionals: true, options });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

type ErrorClass = abstract new (...given: never[]) => Error;

/** Runs a command and prints its result. Errors of the classes in `refusals` are printed, exit code 1; any other is a bug. */
export async function runCommand(
  run: (args: string[]) => Promise<string>,
  usage: string,
  refusals: readonly ErrorClass[],
): Promise<void> {
  try {
    console.log(await run(process.argv.slice(2)));
  } catch (error) {
    if (error instanceof UsageError) {
      console.error(`${error.message}\n\n${usage}`);
      process.exitCode = 2;
    } else if (error instanceof Error && refusals.some((refusal) => error instanceof refusal)) {
      console.error(error.message);
      process.exitCode = 1;
    } else {
      throw error;
    }
  }
}
