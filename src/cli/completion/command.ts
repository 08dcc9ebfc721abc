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
    .action(async (shell) => context.print((await import("./script.ts")).completionScript(shell, program)));
}
