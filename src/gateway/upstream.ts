/** The connection to the upstream. */
import { readFile } from "node:fs/promises";
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import type { Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { ClientSessions } from "../http2/client-sessions.ts";
import type { GatewayArguments } from "./arguments.ts";
import { createGrpcUpstream } from "./grpc-transport.ts";

interface Upstream {
  readonly transport: Transport;
  /** Closes its connections. */
  close(): void;
}

/** How long a ping of HTTP/2 may stay without a response, in milliseconds. */
const PING_TIMEOUT_MS = 15_000;

/** @throws Error if the authorities cannot be read */
export async function createUpstream(args: GatewayArguments): Promise<Upstream> {
  const tls = args.upstreamCa === undefined ? {} : { ca: await readFile(args.upstreamCa) };
  const common = { baseUrl: args.upstream, readMaxBytes: args.maxBodyBytes };
  if (args.upstreamHttp === "1.1") {
    const agent = args.upstream.startsWith("https:")
      ? new HttpsAgent({ keepAlive: true, ...tls })
      : new HttpAgent({ keepAlive: true });
    const options = { ...common, httpVersion: "1.1", nodeOptions: { agent } } as const;
    return { transport: createTransport(args, options), close: () => agent.destroy() };
  }
  const pings = {
    pingTimeoutMs: PING_TIMEOUT_MS,
    ...(args.pingIntervalMs > 0 && { pingIntervalMs: args.pingIntervalMs }),
  };
  const sessionManager = new ClientSessions(args.upstream, pings, tls);
  const options = { ...common, httpVersion: "2", sessionManager } as const;
  const transport = args.protocol === "grpc" ? createGrpcUpstream(options) : createTransport(args, options);
  return { transport, close: () => sessionManager.close() };
}

function createTransport(
  { protocol }: GatewayArguments,
  options: Parameters<typeof createGrpcWebTransport>[0],
): Transport {
  return protocol === "connect"
    ? createConnectTransport({ ...options, useBinaryFormat: true })
    : createGrpcWebTransport(options);
}
