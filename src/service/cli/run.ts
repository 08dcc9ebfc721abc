/** Runs the command line: one command, its output and its exit code. */
import { type Command, CommanderError } from "commander";
import { ConfigError, type Environment } from "../config/reader.ts";
import { CommandError, type Context, EXIT, type ExitCode } from "./context.ts";
import { escapeInvisible } from "./output/text.ts";
import { createProgram } from "./program.ts";

/** Runs a command of this process. @param args without the interpreter and the script */
export async function runCommandLine(
  args: readonly string[],
  env: Environment,
  serve: () => Promise<void>,
): Promise<void> {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    // The reader of the output has read enough (`| head`). That is not a failure.
    if (error.code === "EPIPE") process.exit(process.exitCode ?? EXIT.done);
    process.stderr.write(`standard output cannot be written (${error.code})\n`);
    process.exit(EXIT.failed);
  });
  // Nobody reads the remarks. The command continues: it may serve a gateway, or be in the middle of a change.
  process.stderr.on("error", () => {});
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

export async function runCommand(args: readonly string[], given: Context): Promise<void> {
  const context: Context = {
    ...given,
    print: (text) => given.print(escapeInvisible(text)),
    note: (text) => given.note(escapeInvisible(text)),
  };
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

/** Matches ids that begin with a dash. Options have one dash and one letter, or two dashes; ids have 23 or 43 characters. */
const DASHED_ID = /^-(?:[^-].+|-(?:[\w-]{21}|[\w-]{41}))$/;

const ID_ARGUMENTS = ["session-id", "kid"];

/**
 * Moves ids that begin with a dash, as one in 64 random ids does, behind `--`, where commander looks for no options. Values of options
 * stay in place: commander accepts any text there.
 */
function protectDashedIds(args: readonly string[], program: Command): readonly string[] {
  let command = program;
  const ids: string[] = [];
  const others: string[] = [];
  for (let at = 0; at < args.length; at++) {
    const arg = args[at] as string;
    if (arg === "--") return [...others, "--", ...ids, ...args.slice(at + 1)];
    const option = command.options.find(({ short, long }) => arg === short || arg === long);
    const takesId = command.registeredArguments.some((argument) => ID_ARGUMENTS.includes(argument.name()));
    if (option?.required) others.push(arg, ...args.slice(++at, at + 1));
    else if (option === undefined && takesId && DASHED_ID.test(arg)) ids.push(arg);
    else {
      others.push(arg);
      command = command.commands.find((each) => each.name() === arg) ?? command;
    }
  }
  return ids.length === 0 ? others : [...others, "--", ...ids];
}
