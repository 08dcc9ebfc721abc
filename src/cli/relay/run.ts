/** Runs a relay of the feed until a signal ends it. */
import { once } from "node:events";
import { startRelay } from "../../relay/start.ts";
import type { Audit } from "../../session/audit.ts";
import { type FollowedAdminAccess, loadAdminAccess } from "../../tokens/admin-access.ts";
import { systemEntropy } from "../../tokens/random.ts";
import { connectionOf } from "../admin-api/client.ts";
import type { ConnectionOptions } from "../admin-api/options.ts";
import type { Context } from "../context.ts";
import { CommandError, EXIT, usageError } from "../exit.ts";

type RelayOptions = ConnectionOptions & {
  readonly watchers?: string;
  readonly host: string;
  readonly port: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
};

export async function relay(context: Context, options: RelayOptions): Promise<void> {
  const { url, credential, nodeOptions } = connectionOf(context.env, options);
  const port = Number(options.port);
  if (!/^\d{1,5}$/.test(options.port) || port > 65_535) throw usageError("--port is a number of at most 65535");
  const access = await loadWatchers(options.watchers ?? context.env.ADMIN_TOKENS_FILE);
  const log = (line: object) => context.note(JSON.stringify({ time: new Date().toISOString(), ...line }));
  const audit: Audit = (event, requester) => log({ ...event, ip: requester.address() });
  const stopFollowing = access.watch({
    onChange: (names) => log({ event: "admin_tokens_changed", names }),
    onRefusal: (fault) => log({ event: "admin_tokens_refused", fault: fault.message }),
  });
  try {
    const running = await startRelay({
      // Without a token, a client certificate authenticates the relay.
      upstream: {
        adminUrl: url,
        nodeOptions,
        ...(credential() === undefined ? {} : { adminToken: () => credential()?.token ?? "" }),
      },
      ...{
        host: options.host,
        port,
        certificate: certificateOf(options, log),
        access,
        audit,
        instance: systemEntropy().text(12),
      },
      report: (event) => log("error" in event ? { ...event, error: textOf(event.error) } : event),
      onBug: (error) => log({ event: "bug", error: textOf(error) }),
      onRefused: (error) => log({ event: "refused_by_service", error: textOf(error) }),
    }).catch((error: unknown) => {
      throw new CommandError(textOf(error), EXIT.failed);
    });
    context.print(JSON.stringify({ event: "ready", url: running.url }));
    await Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")]);
    log({ event: "draining" });
    await running.close();
  } finally {
    stopFollowing();
  }
}

async function loadWatchers(path: string | undefined): Promise<FollowedAdminAccess> {
  if (path === undefined) throw usageError("--watchers or ADMIN_TOKENS_FILE is needed");
  return loadAdminAccess([], path).catch((error: unknown) => {
    throw new CommandError(textOf(error), EXIT.failed);
  });
}

function certificateOf({ tlsCert: certFile, tlsKey: keyFile }: RelayOptions, log: (line: object) => void) {
  if (certFile === undefined && keyFile === undefined) return undefined;
  if (certFile === undefined || keyFile === undefined) throw usageError("--tls-cert and --tls-key go together");
  return {
    ...{ certFile, keyFile, onChange: () => log({ event: "certificate_changed" }) },
    onRefusal: (fault: Error) => log({ event: "certificate_refused", fault: fault.message }),
  };
}

const textOf = (error: unknown) => (error instanceof Error ? error.message : String(error));
