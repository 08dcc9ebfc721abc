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

function sections(): string[] {
  const commands = commandsOf(programOf());
  const options = commands.map(({ command }) => optionsOf(command).map(lineOf));
  const common = shared(options, SHARED_BY.options);
  const helps = commands.map(({ command }) => paragraphsOf(command, common));
  const commonParagraphs = shared(helps, SHARED_BY.paragraphs);
  const forMany = [...common, "", ...commonParagraphs].join("\n");
  const texts = commands.map(({ name }, i) => {
    // A group's list of commands says what the texts of these commands say.
    const own = (helps[i] ?? []).filter(
      (text) => !commonParagraphs.has(text) && !(i > 0 && text.startsWith("Commands:")),
    );
    return { name, text: textOf(own) };
  });
  // The second word of a name is that of the group, or of the command if it is in none.
  const groups = Map.groupBy(texts, ({ name }) => name.split(" ", 2).join(" "));
  const codeOf = (text: string) => `\`\`\`text\n${text}\n\`\`\`\n`;
  return [
    `Many commands have some of these, which \`--help\` lists and the sections below leave out:\n\n${codeOf(forMany)}`,
    ...[...groups].map(([name, members]) => `### ${name}\n\n${codeOf(members.map(({ text }) => text).join("\n\n"))}`),
  ];
}

/** Returns the page as it must be: the text written by hand, and what is peculiar in the help of every command. */
export function commandLinePage(): string {
  const [byHand = ""] = readFileSync(PAGE, "utf8").split(HEADING);
  return `${byHand}${HEADING}\n${sections().join("\n")}`;
}

if (import.meta.main) writeFileSync(PAGE, commandLinePage());
