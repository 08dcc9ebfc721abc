/** The connections to the upstream. */
import { Agent as HttpAgent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import {
  Health,
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../../gen/grpc/health/v1/health_pb.ts";
import { SessionPool } from "../platform/http2/session-pool.ts";
import type { GatewayArguments } from "./arguments.ts";
import { lost } from "./grpc-call.ts";
import { createGrpcUpstream, preparing } from "./grpc-transport.ts";
import { sendAgain, sendingStreamsAgain } from "./send-again.ts";
import type { UpstreamTls } from "./upstream-tls.ts";

export interface Upstream {
  readonly transport: Transport;
  /** Returns whether a further call would have to wait for the end of another one. */
  isFull(): boolean;
  /** Uses other certificates for connections from now on. Open ones finish their calls. */
  renewTls(tls: UpstreamTls): void;
  close(): void;
}

/** How long an HTTP/2 PING may remain unacknowledged, in milliseconds. */
const PING_TIMEOUT_MS = 15_000;

/** @param onFailure receives the error of a connection to one of several servers */
export function createUpstream(
  args: GatewayArguments,
  onFailure: (authority: string, error: unknown) => void,
  tls: UpstreamTls = {},
): Upstream {
  const [upstream, ...others] = args.upstreams;
  const common = { baseUrl: upstream, readMaxBytes: args.maxBodyBytes };
  if (args.upstreamHttp === "1.1") return createHttp1Upstream(args, { ...common, httpVersion: "1.1" }, tls);
  const pool = {
    connections: args.upstreamConnections,
    // If there is only one server, its errors are reported with its calls.
    onFailure: others.length > 0 ? onFailure : () => {},
    pingTimeoutMs: PING_TIMEOUT_MS,
    ...(args.pingIntervalMs > 0 && { pingIntervalMs: args.pingIntervalMs }),
  };
  const sessionManager = new SessionPool([upstream, ...others], pool, tls);
  const options = { ...common, httpVersion: "2" } as const;
  const transport =
    args.protocol === "grpc"
      ? createGrpcUpstream({ ...common, sessionManager })
      : createTransport(args, { ...options, sessionManager: preparing(sessionManager) });
  return {
    transport,
    isFull: () => sessionManager.isFull,
    renewTls: (next) => sessionManager.renew(next),
    close: () => sessionManager.close(),
  };
}

type TransportOptions = Parameters<typeof createGrpcWebTransport>[0];

function createHttp1Upstream(
  args: GatewayArguments,
  options: TransportOptions & { readonly httpVersion: "1.1" },
  tls: UpstreamTls,
): Upstream {
  const secure = options.baseUrl.startsWith("https:") ? new HttpsAgent({ keepAlive: true, ...tls }) : undefined;
  const agent = secure ?? new HttpAgent({ keepAlive: true });
  return {
    transport: createTransport(args, { ...options, nodeOptions: { agent } }),
    isFull: () => false,
    renewTls(next) {
      if (secure === undefined) return;
      // An agent reuses a connection for requests with the same options alone, so those of the old certificate are not used again.
      Object.assign(secure.options, next);
      for (const idle of Object.values(secure.freeSockets).flat()) idle?.destroy();
    },
    close: () => agent.destroy(),
  };
}

function createTransport({ protocol }: GatewayArguments, options: TransportOptions): Transport {
  const transport =
    protocol === "connect"
      ? createConnectTransport({ ...options, useBinaryFormat: true })
      : createGrpcWebTransport(options);
  return {
    stream: sendingStreamsAgain(transport),
    unary: (method, signal, timeoutMs, ...call) =>
      sendAgain(timeoutMs, (leftMs) => transport.unary(method, signal, leftMs, ...call)).catch((error: unknown) => {
        throw isCut(error) ? lost(error) : error;
      }),
  };
}

/** Returns whether a response was cut within its message. connect-es reports that as if the client had sent a bad message. */
function isCut(error: unknown): boolean {
  return error instanceof ConnectError && error.code === Code.InvalidArgument && !error.isWireError;
}

/** How long the upstream may take to respond to a probe, in milliseconds. */
const PROBE_TIMEOUT_MS = 2_000;

/** Whether the upstream can serve requests, and if not, why. */
type Readiness = { readonly ready: true } | { readonly ready: false; readonly reason: string };

/** Calls the upstream's health service. A server without a health service is ready if it responds at all. */
export async function checkReadiness({ transport, isFull }: Upstream): Promise<Readiness> {
  // If the connections have no free stream, a probe would have to wait like any other call.
  if (isFull()) return { ready: false, reason: "the connections to the upstream have no free stream" };
  try {
    const request = create(HealthCheckRequestSchema);
    const { message } = await transport.unary(Health.method.check, undefined, PROBE_TIMEOUT_MS, undefined, request);
    if (message.status === ServingStatus.SERVING) return { ready: true };
    return { ready: false, reason: `the upstream reports the status ${message.status}` };
  } catch (reason) {
    const error = ConnectError.from(reason, Code.Internal);
    if (error.code === Code.Unimplemented) return { ready: true };
    return { ready: false, reason: error.message };
  }
}
