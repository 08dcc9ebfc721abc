/** Writes the help of every command into docs/reference/command-line.md, as part of `npm run generate`. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command, Option } from "commander";
import { createProgram, HELP_WIDTH } from "../../src/service/cli/program.ts";

const PAGE = join(import.meta.dirname, "../../docs/reference/command-line.md");
/** Everything below this heading of the page is generated. */
const HEADING = "## Commands\n";

function programOf(): Command {
  const nothing = () => {};
  const context = { env: {}, print: nothing, note: nothing, setExitCode: nothing, serve: async () => {} };
  return createProgram(context, HELP_WIDTH);
}

/** How many commands have an option at least, for the page to list it once. */
const SHARED_BY = 4;
/** How many commands of a group have it at least, for the group to list it once. */
const SHARED_IN_GROUP_BY = 2;

type Named = { readonly name: string; readonly command: Command };

/** Returns a command and its subcommands, each by its whole name. */
function commandsOf(command: Command, above = ""): Named[] {
  const name = `${above} ${command.name()}`.trim();
  const below = command.createHelp().visibleCommands(command);
  return [
    { name, command },
    ...below.filter((each) => each.name() !== "help").flatMap((each) => commandsOf(each, name)),
  ];
}

/** Returns the values that occur in at least `count` lists. */
function shared(lists: readonly (readonly string[])[], count: number): Set<string> {
  const counts = new Map<string, number>();
  for (const value of lists.flat()) counts.set(value, (counts.get(value) ?? 0) + 1);
  return new Set([...counts.keys()].filter((value) => (counts.get(value) ?? 0) >= count));
}

const optionsOf = (command: Command) => command.createHelp().visibleOptions(command);
const lineOf = ({ flags, description }: Option) => `${flags}: ${description}`;

/** Returns the usage, the description and the options of a command, without some options. Notes and examples are in its help alone. */
function textOf(command: Command, without: ReadonlySet<string>): string {
  const kept = optionsOf(command).filter((option) => !without.has(lineOf(option)));
  const help = { ...command.configureHelp(), visibleOptions: () => kept, visibleCommands: () => [] };
  const [usage = "", ...more] = command
    .configureHelp(help)
    .helpInformation()
    .trimEnd()
    .split("\n\n")
    .map((text) => text.replace(/^(?:Usage|Arguments|Options):\s/, ""));
  return [usage.replace(" [options]", ""), ...more.map((text) => text.replaceAll(/^(?=\S)/gm, "  "))].join("\n");
}

/** Returns the name of a command's group, or of the command if it is in none: the first two words of its name. */
const groupOf = (name: string) => name.split(" ", 2).join(" ");

/** Returns the section of a group: what several of its commands have, then each command with what it alone has. */
function sectionOf(group: string, members: readonly Named[], common: ReadonlySet<string>) {
  const options = members.map(({ command }) => optionsOf(command).map(lineOf));
  const ofGroup = shared(
    options.map((lines) => lines.filter((line) => !common.has(line))),
    SHARED_IN_GROUP_BY,
  );
  const without = new Set([...common, ...ofGroup]);
  const texts = members.map(({ command }) => textOf(command, without));
  const forGroup = [...ofGroup].map((line) => `  ${line}`).join("\n");
  const first = forGroup === "" ? [] : [`Several of these commands have:\n${forGroup}`];
  return `### ${group}\n\n${codeOf([...first, ...texts].join("\n\n"))}`;
}

const codeOf = (text: string) => `\`\`\`text\n${text}\n\`\`\`\n`;

function sections(): string[] {
  const commands = commandsOf(programOf());
  const common = shared(
    commands.map(({ command }) => optionsOf(command).map(lineOf)),
    SHARED_BY,
  );
  const groups = Map.groupBy(commands, ({ name }) => groupOf(name));
  return [
    `Many commands have some of these:\n\n${codeOf([...common].join("\n"))}`,
    ...[...groups].map(([group, members]) => sectionOf(group, members, common)),
  ];
}

/** Returns the page as it must be: the text written by hand, and what is peculiar in the help of every command. */
export function commandLinePage(): string {
  const [byHand = ""] = readFileSync(PAGE, "utf8").split(HEADING);
  return `${byHand}${HEADING}\n${sections().join("\n")}`;
}

if (import.meta.main) writeFileSync(PAGE, commandLinePage());
