import type { Command } from "commander";
import { addConnectionOptions, CONNECTION_HELP } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { CALL_EXIT_CODES } from "../exit.ts";

export function addRelayCommand(program: Command, context: Context): void {
  const command = program.command("relay").description("serve the revocation feed on to the verifiers near it");
  addConnectionOptions(command)
    .option("--watchers <path>", "a file with the tokens of watchers (otherwise ADMIN_TOKENS_FILE)")
    .option("--host <address>", "where to listen", "127.0.0.1")
    .option("--port <number>", "0: any that is free", "8082")
    .option("--tls-cert <path>", "PEM of the relay's own certificate, together with --tls-key")
    .option("--tls-key <path>", "PEM of its private key")
    .addHelpText(
      "after",
      `\nIt follows the feed of the service, or of another relay, and serves it by the same RPC, WatchRevocations. Verifiers
use it as their admin API, with the URL of the key set beside it. /readyz, /livez and /metrics are for those who run it.
Its own admin token needs the scope watch, and so do those of its watchers, which are in a file like ADMIN_TOKENS_FILE
and are read again when it changes. SIGTERM drains and ends it.

${CONNECTION_HELP}
${CALL_EXIT_CODES}`,
    )
    .action(async (options) => (await import("./run.ts")).relay(context, options));
}
