/** Runs a relay of the revocation feed until the process receives a signal to stop. */
import { startRelay } from "../../sidecars/relay/start.ts";
import { type FollowedAdminAccess, loadAdminAccess } from "../../tokens/admin-access.ts";
import { systemEntropy } from "../../tokens/random.ts";
import { adminApiOf } from "../admin-api/client.ts";
import type { ConnectionOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { usageError } from "../exit.ts";
import { type Log, logOf, parsePort, refuse, serveUntilSignal } from "../serving.ts";

type RelayOptions = ConnectionOptions & {
  readonly watchers?: string;
  readonly host: string;
  readonly port: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
};

export async function relay(context: Context, options: RelayOptions): Promise<void> {
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
