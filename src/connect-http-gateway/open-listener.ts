import { ADDRESS_SHARE } from "../platform/listener/limits.ts";
import { type Listener, openListener, type Tls } from "../platform/listener/listener.ts";
import { affordable, type Resources } from "../platform/listener/resources.ts";
import type { GatewayArguments } from "./arguments.ts";
import { reasonsOf, type WriteLog } from "./request-log.ts";

/** Limits the arguments to what the process can afford, but allows at least four connections and one body of the largest size. */
export function withinResources(args: GatewayArguments, resources: Resources): GatewayArguments {
  const { connections, bodyBytes } = affordable(resources, args.bounds.maxPendingBodyBytes);
  const maxPendingBodyBytes = Math.min(args.bounds.maxPendingBodyBytes, Math.max(bodyBytes, args.maxBodyBytes));
  return {
    ...args,
    maxConnections: Math.min(args.maxConnections, Math.max(4, connections)),
    bounds: { ...args.bounds, maxPendingBodyBytes },
  };
}

/** @throws Error if the port is taken */
export async function openGatewayListener(
  args: GatewayArguments,
  tls: Tls | undefined,
  write: WriteLog,
): Promise<Listener> {
  const { maxConnections, trustForwarded } = args;
  return openListener("gateway", args.host, args.port, {
    tls,
    settings: { host: "--listen", port: "--listen" },
    limits: {
      maxConnections,
      // Behind a proxy all connections have the address of the proxy, so there is no limit for an address.
      maxConnectionsPerAddress: trustForwarded !== false ? maxConnections : Math.ceil(maxConnections * ADDRESS_SHARE),
      isProxy: trustForwarded === true ? () => true : trustForwarded || undefined,
      // Streams may last long, so the listener does not limit their time. The HTTP layer limits the time of each body and message.
      requestTimeoutMs: Number.POSITIVE_INFINITY,
    },
    onBug: (error) => write({ event: "bug", reason: reasonsOf(error) }),
    onRefused: (reason) => write({ event: "connection refused", reason }),
  });
}
