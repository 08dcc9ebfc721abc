/** Writes the help of every command into docs/reference/command-line.md, as part of `npm run generate`. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command, Option } from "commander";
import { createProgram, HELP_WIDTH } from "../src/service/cli/program.ts";

const PAGE = join(import.meta.dirname, "../docs/reference/command-line.md");
/** Everything below this heading of the page is generated. */
const HEADING = "## Commands\n";

function programOf(): Command {
  const nothing = () => {};
  const context = { env: {}, print: nothing, note: nothing, setExitCode: nothing, serve: async () => {} };
  return createProgram(context, HELP_WIDTH);
}

/** How many commands have an option or a paragraph at least, for the page to say it once. */
const SHARED_BY = { options: 4, paragraphs: 7 };
/** How many commands of a group have them at least, for the group to say them once. */
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

/** Returns the paragraphs of a command's help, without some of its options. */
function paragraphsOf(command: Command, without: ReadonlySet<string>): string[] {
  const kept = optionsOf(command).filter((option) => !without.has(lineOf(option)));
  const visibleOptions = () => kept;
  let text = "";
  const writeOut = (part: string) => {
    text += part;
  };
  command
    .configureHelp({ ...command.configureHelp(), visibleOptions })
    .configureOutput({ writeOut })
    .outputHelp();
  return text.trimEnd().split("\n\n");
}

/** Returns the help of a command in few lines: its usage, and indented all else. */
function textOf(paragraphs: readonly string[]): string {
  const [usage = "", ...more] = paragraphs.map((text) => text.replace(/^(?:Usage|Arguments|Options):\s/, ""));
  return [usage.replace(" [options]", ""), ...more.map((text) => text.replaceAll(/^(?=\S)/gm, "  "))].join("\n");
}

/** Returns the name of a command's group, or of the command if it is in none: the first two words of its name. */
const groupOf = (name: string) => name.split(" ", 2).join(" ");

/** Returns the section of a group: what several of its commands have, then each command with what it alone has. */
function sectionOf(group: string, members: readonly Named[], common: ReadonlySet<string>, said: ReadonlySet<string>) {
  const options = members.map(({ command }) => optionsOf(command).map(lineOf));
  const own = options.map((lines) => lines.filter((line) => !common.has(line)));
  const ofGroup = shared(own, SHARED_IN_GROUP_BY);
  const without = new Set([...common, ...ofGroup]);
  // A group's list of commands says what the texts of these commands say.
  const left = (text: string) => !said.has(text) && !(group.includes(" ") && text.startsWith("Commands:"));
  const helps = members.map(({ command }) => paragraphsOf(command, without).filter(left));
  const paragraphs = shared(helps, SHARED_IN_GROUP_BY);
  const texts = helps.map((help) => textOf(help.filter((text) => !paragraphs.has(text))));
  const forGroup = [...ofGroup, ...paragraphs].join("\n");
  const first = forGroup === "" ? [] : [`Several of these commands have:\n${forGroup.replaceAll(/^(?=.)/gm, "  ")}`];
  return `### ${group}\n\n${codeOf([...first, ...texts].join("\n\n"))}`;
}

const codeOf = (text: string) => `\`\`\`text\n${text}\n\`\`\`\n`;

function sections(): string[] {
  const commands = commandsOf(programOf());
  const common = shared(
    commands.map(({ command }) => optionsOf(command).map(lineOf)),
    SHARED_BY.options,
  );
  const said = shared(
    commands.map(({ command }) => paragraphsOf(command, common)),
    SHARED_BY.paragraphs,
  );
  const forMany = [...common, "", ...said].join("\n");
  const groups = Map.groupBy(commands, ({ name }) => groupOf(name));
  return [
    `Many commands have some of these, which \`--help\` lists and the sections below leave out:\n\n${codeOf(forMany)}`,
    ...[...groups].map(([group, members]) => sectionOf(group, members, common, said)),
  ];
}

/** Returns the page as it must be: the text written by hand, and what is peculiar in the help of every command. */
export function commandLinePage(): string {
  const [byHand = ""] = readFileSync(PAGE, "utf8").split(HEADING);
  return `${byHand}${HEADING}\n${sections().join("\n")}`;
}

if (import.meta.main) writeFileSync(PAGE, commandLinePage());
