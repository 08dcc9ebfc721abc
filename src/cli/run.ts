/** Runs the command line: one command, its output and its exit code. */
import { CommanderError } from "commander";
import { ConfigError, type Environment } from "../config/reader.ts";
import type { Context } from "./context.ts";
import { protectDashedIds } from "./dashed-ids.ts";
import { CommandError, EXIT, type ExitCode } from "./exit.ts";
import { createProgram } from "./program.ts";

/**
 * Runs a command of this process.
 *
 * @param args without the interpreter and the script
 * @param serve runs the service
 */
export async function runCommandLine(
  args: readonly string[],
  env: Environment,
  serve: () => Promise<void>,
): Promise<void> {
  // If the reader of the output has read enough (`| head`), the command ends. That is not a failure.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code !== "EPIPE") throw error;
      process.exit(process.exitCode ?? EXIT.done);
    });
  }
  await runCommand(args, {
    env,
    print: (text) => void process.stdout.write(`${text}\n`),
    note: (text) => void process.stderr.write(`${text}\n`),
    setExitCode(code) {
      process.exitCode = code;
    },
    serve,
  });
}

/** Runs a command. Its output and its exit code go to the context. */
export async function runCommand(args: readonly string[], context: Context): Promise<void> {
  try {
    const program = createProgram(context);
    await program.parseAsync(protectDashedIds(args, program), { from: "user" });
  } catch (error) {
    context.setExitCode(exitCodeOf(error, context));
  }
}

function exitCodeOf(error: unknown, context: Context): ExitCode {
  // Commander has printed its message already. Everything that it refuses is wrong usage.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
  if (!(error instanceof CommandError || error instanceof ConfigError)) throw error;
  context.note(error.message);
  return error instanceof CommandError ? error.exitCode : EXIT.failed;
}
