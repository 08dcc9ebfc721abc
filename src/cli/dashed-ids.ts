/** Handles arguments that are ids and begin with a dash, as one in 64 random ids does. */
import type { Command } from "commander";

/**
 * Matches ids that begin with a dash. No option here has one dash and more than one letter. After two dashes, an id is recognized by its
 * length: 23 or 43 characters.
 */
const DASHED_ID = /^-(?:[^-].+|-(?:[\w-]{21}|[\w-]{41}))$/;

const ID_ARGUMENTS = ["session-id", "kid"];

/**
 * Moves ids that look like options behind `--`, where commander looks for no options. Values of options stay in place, because commander
 * accepts any text after an option that has a value.
 */
export function protectDashedIds(args: readonly string[], program: Command): readonly string[] {
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
