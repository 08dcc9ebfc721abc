/** The tree of commands for shell completion: which words may follow each path of commands. */
import type { Command } from "commander";

type Word = { readonly word: string; readonly description: string };

export type Node = {
  /** The commands that lead to this node, without the program's name: `keys rotate`. */
  readonly path: string;
  readonly commands: readonly Word[];
  readonly options: readonly (Word & { readonly values: Values })[];
  readonly choices: readonly string[];
  readonly takesPath: boolean;
};

/** The possible values of an option: `text` cannot be completed, a list has all words. */
export type Values = "none" | "path" | "text" | readonly string[];

export function nodesOf(command: Command, path = ""): readonly Node[] {
  const visible = command.createHelp().visibleCommands(command);
  const own: Node = {
    path,
    commands: visible.map((each) => ({ word: each.name(), description: firstSentence(each.description()) })),
    options: command
      .createHelp()
      .visibleOptions(command)
      .map((option) => ({
        word: option.long ?? option.short ?? "",
        description: firstSentence(option.description),
        values: valuesOf(option.flags, option.argChoices),
      })),
    choices: command.registeredArguments.flatMap((argument) => argument.argChoices ?? []),
    takesPath: command.registeredArguments.some((argument) => argument.name() === "directory"),
  };
  const below = command.commands.filter((each) => visible.includes(each));
  return [own, ...below.flatMap((each) => nodesOf(each, `${path} ${each.name()}`.trim()))];
}

function valuesOf(flags: string, choices: readonly string[] | undefined): Values {
  if (choices !== undefined) return choices;
  if (/[<[]path/.test(flags)) return "path";
  return /[<[]/.test(flags) ? "text" : "none";
}

/** Shortens a text to its first sentence, and removes characters that a shell would interpret. */
const firstSentence = (text: string) => (text.split(/[;:.(]/)[0] ?? "").replaceAll(/['"`\\[\]$]/g, "").trim();
