/** Generates a self-contained completion script for a shell. The script starts no process. */
import { Argument, type Command } from "commander";
import type { Context } from "../context.ts";

export function addCompletionCommand(program: Command, context: Context): void {
  program
    .command("completion")
    .description("print a script that completes commands in a shell")
    .addArgument(new Argument("<shell>", "the shell").choices(["bash", "zsh", "fish"]))
    .addHelpText(
      "after",
      `
  bash:  session-service completion bash > /etc/bash_completion.d/session-service
  zsh:   session-service completion zsh > "\${fpath[1]}/_session-service"
  fish:  session-service completion fish > ~/.config/fish/completions/session-service.fish

Exit codes: 0 done, 2 wrong usage.`,
    )
    .action((shell) => context.print(completionScript(shell, program)));
}

function completionScript(shell: "bash" | "zsh" | "fish", program: Command): string {
  const nodes = nodesOf(program);
  const paths = nodes.map(({ path }) => path).filter((path) => path !== "");
  return { bash, zsh, fish }[shell](nodes, paths).trimEnd();
}

const NAME = "session-service";
const FUNCTION = "_session_service";

/** Completes the name of a file. Each name is on a separate line, because names may contain spaces. */
const BASH_FILES = `compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$cur")`;

const words = (node: Node) => [...node.commands.map(({ word }) => word), ...node.choices];

/** Generates the branches of a shell's `case` for options with values. @param complete generates what completes such a value */
const valueCases = (nodes: readonly Node[], complete: (values: Values) => string) =>
  nodes
    .flatMap(({ path, options }) => options.map((option) => ({ path, ...option })))
    .filter(({ values }) => values !== "none")
    .map(({ path, word, values }) => `    '${path} ${word}') ${complete(values)}; return ;;`)
    .join("\n");

function bash(nodes: readonly Node[], paths: readonly string[]): string {
  const cases = nodes.map((node) => {
    const options = node.options.map(({ word }) => word).join(" ");
    const files = node.takesPath ? `; ${BASH_FILES}` : "";
    return `    '${node.path}') [[ $cur == -* ]] && COMPREPLY=($(compgen -W '${options}' -- "$cur")) || { COMPREPLY=($(compgen -W '${words(node).join(" ")}' -- "$cur"))${files}; } ;;`;
  });
  return `# bash completion for ${NAME}
${FUNCTION}() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} path='' next i
  for ((i = 1; i < COMP_CWORD; i++)); do
    next=\${path:+$path }\${COMP_WORDS[i]}
    case "$next" in
      ${paths.map((path) => `'${path}'`).join(" | ")}) path=$next ;;
    esac
  done
  case "$path $prev" in
${valueCases(nodes, bashValues)}
  esac
  case "$path" in
${cases.join("\n")}
  esac
}
complete -F ${FUNCTION} ${NAME}
`;
}

function bashValues(values: Values): string {
  if (values === "path") return BASH_FILES;
  if (typeof values === "string") return "COMPREPLY=()";
  return `COMPREPLY=($(compgen -W '${values.join(" ")}' -- "$cur"))`;
}

function zsh(nodes: readonly Node[], paths: readonly string[]): string {
  const described = (entries: readonly { readonly word: string; readonly description: string }[]) =>
    entries.map(({ word, description }) => `'${word.replaceAll(":", "\\:")}:${description}'`).join(" ");
  const cases = nodes.map((node) => {
    const choices = node.choices.map((word) => ({ word, description: "" }));
    const files = node.takesPath ? "; _files" : "";
    return `    '${node.path}')
      if [[ $cur == -* ]]; then candidates=(${described(node.options)}); else candidates=(${described([...node.commands, ...choices])})${files}; fi ;;`;
  });
  return `#compdef ${NAME}
# zsh completion for ${NAME}
${FUNCTION}() {
  local cur=\${words[CURRENT]} prev=\${words[CURRENT-1]} cmdpath='' next i
  local -a candidates
  for ((i = 2; i < CURRENT; i++)); do
    next="\${cmdpath:+$cmdpath }\${words[i]}"
    case "$next" in
      (${paths.map((path) => `${path.replaceAll(" ", "\\ ")}`).join("|")}) cmdpath=$next ;;
    esac
  done
  case "$cmdpath $prev" in
${valueCases(nodes, zshValues)}
  esac
  case "$cmdpath" in
${cases.join("\n")}
  esac
  (( \${#candidates} )) && _describe '${NAME}' candidates
}
if [[ \${funcstack[1]} == _${NAME} ]]; then ${FUNCTION} "$@"; else compdef ${FUNCTION} ${NAME}; fi
`;
}

function zshValues(values: Values): string {
  if (values === "path") return "_files";
  return typeof values === "string" ? "_message value" : `compadd -- ${values.join(" ")}`;
}

function fish(nodes: readonly Node[], paths: readonly string[]): string {
  const lines = nodes.flatMap((node) => {
    const when = `-n '__session_service_at "${node.path}"'`;
    return [
      ...node.commands.map(
        ({ word, description }) => `complete -c ${NAME} -f ${when} -a '${word}' -d '${description}'`,
      ),
      ...(node.choices.length > 0 ? [`complete -c ${NAME} -f ${when} -a '${node.choices.join(" ")}'`] : []),
      ...(node.takesPath ? [`complete -c ${NAME} -F ${when}`] : []),
      ...node.options.map(
        ({ word, description, values }) =>
          `complete -c ${NAME} ${when} -l '${word.replace(/^--/, "")}'${fishValues(values)} -d '${description}'`,
      ),
    ];
  });
  return `# fish completion for ${NAME}
function __session_service_at
    set -l path ''
    set -l words (commandline -opc)
    for word in $words[2..-1]
        set -l next (string trim -- "$path $word")
        if contains -- "$next" ${paths.map((path) => `'${path}'`).join(" ")}
            set path $next
        end
    end
    test "$path" = "$argv[1]"
end
complete -c ${NAME} -f
${lines.join("\n")}
`;
}

function fishValues(values: Values): string {
  if (values === "none") return "";
  if (values === "path") return " -r -F";
  return values === "text" ? " -x" : ` -x -a '${values.join(" ")}'`;
}

type Word = { readonly word: string; readonly description: string };

type Node = {
  /** The commands that lead to this node, without the program's name: `keys rotate`. */
  readonly path: string;
  readonly commands: readonly Word[];
  readonly options: readonly (Word & { readonly values: Values })[];
  readonly choices: readonly string[];
  readonly takesPath: boolean;
};

/** The possible values of an option: `text` cannot be completed, a list has all words. */
type Values = "none" | "path" | "text" | readonly string[];

function nodesOf(command: Command, path = ""): readonly Node[] {
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
