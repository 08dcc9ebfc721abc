/** Runs a relay of the revocation feed until the process receives a signal to stop. */
import type { Command } from "commander";
import type { FollowedAdminAccess } from "../tokens/admin-access.ts";
import { addConnectionOptions, CONNECTION_HELP, type ConnectionOptions } from "./admin-api/options.ts";
import { CALL_EXIT_CODES, type Context, usageError } from "./context.ts";
import { type Log, logOf, parsePort, refuse, serveUntilSignal } from "./serving.ts";

export function addRelayCommand(program: Command, context: Context): void {
  const command = program.command("relay").description("serve the revocation feed on to the verifiers near it");
  addConnectionOptions(command)
    .option("--watchers <path>", "a file with the tokens of watchers (otherwise ADMIN_TOKENS_FILE)")
    .option("--host <address>", "where to listen", "127.0.0.1")
    .option("--port <number>", "0: any that is free", "8082")
    .option(
      "--metrics-host <name...>",
      "a public name under which /metrics is scraped, besides addresses and private names",
    )
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
    .action((options) => relay(context, options));
}

type RelayOptions = ConnectionOptions & {
  readonly watchers?: string;
  readonly host: string;
  readonly port: string;
  readonly metricsHost?: readonly string[];
  readonly tlsCert?: string;
  readonly tlsKey?: string;
};

async function relay(context: Context, options: RelayOptions): Promise<void> {
  const { adminApiOf } = await import("./admin-api/client.ts");
  const { startRelay } = await import("../sidecars/relay/start.ts");
  const { systemEntropy } = await import("../tokens/random.ts");
  const upstream = adminApiOf(context.env, options);
  const port = parsePort(options.port);
  const access = await loadWatchers(options.watchers ?? context.env.ADMIN_TOKENS_FILE);
  const log = logOf(context);
  const stopFollowing = access.watch({
    onChange: (names) => log({ event: "admin_tokens_changed", names }),
    onRefusal: (fault) => log({ event: "admin_tokens_refused", fault: fault.message }),
  });
  try {
    const starting = startRelay({
      upstream,
      host: options.host,
      port,
      metricsHosts: options.metricsHost,
      certificate: certificateOf(options, log),
      access,
      audit: (event, requester) => log({ ...event, ip: requester.address() }),
      instance: systemEntropy().text(12),
      report: log,
      onBug: (error) => log({ event: "bug", error }),
      onRefused: (error) => log({ event: "refused_by_service", error }),
    });
    await serveUntilSignal(context, log, starting);
  } finally {
    stopFollowing();
  }
}

async function loadWatchers(path: string | undefined): Promise<FollowedAdminAccess> {
  if (path === undefined) throw usageError("--watchers or ADMIN_TOKENS_FILE is needed");
  const { loadAdminAccess } = await import("../tokens/admin-access.ts");
  return loadAdminAccess([], path).catch(refuse);
}

function certificateOf({ tlsCert: certFile, tlsKey: keyFile }: RelayOptions, log: Log) {
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) throw usageError("--tls-cert and --tls-key go together");
  return {
    certFile,
    keyFile,
    onChange: () => log({ event: "certificate_changed" }),
    onRefusal: (fault: Error) => log({ event: "certificate_refused", fault: fault.message }),
  };
}
