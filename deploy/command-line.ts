/** Writes the help of every command into docs/command-line.md, as part of `npm run generate`. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { createProgram, HELP_WIDTH } from "../src/cli/program.ts";

const PAGE = join(import.meta.dirname, "../docs/command-line.md");
/** Everything below this heading of the page is generated. */
const HEADING = "## Commands\n";

function programOf(): Command {
  const nothing = () => {};
  const context = { env: {}, print: nothing, note: nothing, setExitCode: nothing, serve: async () => {} };
  return createProgram(context, HELP_WIDTH);
}

function helpOf(command: Command): string {
  let text = "";
  const writeOut = (part: string) => {
    text += part;
  };
  command.configureOutput({ writeOut }).outputHelp();
  return text.trimEnd();
}

/** Returns a command and its subcommands, each by its whole name. */
function sections(command: Command, above = ""): string[] {
  const name = `${above} ${command.name()}`.trim();
  const own = `### ${name}\n\n\`\`\`text\n${helpOf(command)}\n\`\`\`\n`;
  const below = command.createHelp().visibleCommands(command);
  return [own, ...below.filter((each) => each.name() !== "help").flatMap((each) => sections(each, name))];
}

/** Returns the page as it must be: the text written by hand, and the help of every command. */
export function commandLinePage(): string {
  const [byHand = ""] = readFileSync(PAGE, "utf8").split(HEADING);
  return `${byHand}${HEADING}\n${sections(programOf()).join("\n")}`;
}

if (import.meta.main) writeFileSync(PAGE, commandLinePage());
