import { readFile } from "node:fs/promises";
import type { Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcWebTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { protobufCodec } from "../codec/content-codec.ts";
import { createHttpHandler, type NodeHandler } from "../node/node-handler.ts";
import type { NodeResponse } from "../node/node-response.ts";
import type { GatewayArguments } from "./arguments.ts";
import { loadContract } from "./descriptors.ts";
import { createGrpcUpstream } from "./grpc-transport.ts";
import { type GatewayListener, listen, type TlsFiles } from "./listen.ts";
import { checkReadiness } from "./readiness.ts";
import { createRequestLog, type RequestLog, type WriteLog } from "./request-log.ts";

export interface Gateway {
  readonly port: number;
  /** Reads descriptors, service config and certificates again. What was served stays if that fails, which is logged. */
  reload(): Promise<void>;
  close(): Promise<void>;
}

/** @throws Error if the contract cannot be loaded or the port is taken */
export async function startGateway(args: GatewayArguments, write: WriteLog): Promise<Gateway> {
  const sessions = new Http2SessionManager(
    args.upstream,
    { pingTimeoutMs: 15_000, ...(args.pingIntervalMs > 0 && { pingIntervalMs: args.pingIntervalMs }) },
    args.upstreamCa === undefined ? {} : { ca: await readFile(args.upstreamCa) },
  );
  const transport = createTransport(args, sessions);
  const log = createRequestLog(write, args.log === "errors");
  let handler = await createHandler(args, transport, log, write);
  let draining = false;
  const entry: NodeHandler = (request, response) => {
    const path = request.url?.split("?", 1)[0];
    if (path === args.livePath) respond(response, 200, "ok");
    else if (path !== args.readyPath) handler(request, response);
    else if (draining) respond(response, 503, "draining");
    else {
      void checkReadiness(transport).then((state) =>
        respond(response, state.ready ? 200 : 503, state.ready ? "ok" : state.reason),
      );
    }
  };
  const listener: GatewayListener = await listen(
    args.log === "none" ? entry : log.wrap(entry),
    args,
    await readTls(args),
  );
  write({ event: "listening", port: listener.port, upstream: args.upstream });
  return {
    port: listener.port,
    async reload() {
      try {
        const [next, tls] = [await createHandler(args, transport, log, write), await readTls(args)];
        handler = next;
        if (tls !== undefined) listener.replaceTls(tls);
        write({ event: "reloaded" });
      } catch (error) {
        write({ event: "reload failed", reason: error instanceof Error ? error.message : String(error) });
      }
    },
    async close() {
      draining = true;
      await listener.close(args.drainMs);
      sessions.abort();
    },
  };
}

function createTransport(args: GatewayArguments, sessionManager: Http2SessionManager): Transport {
  const options = { baseUrl: args.upstream, httpVersion: "2", sessionManager } as const;
  switch (args.protocol) {
    case "grpc":
      return createGrpcUpstream({ baseUrl: args.upstream, sessionManager });
    case "grpc-web":
      return createGrpcWebTransport(options);
    case "connect":
      return createConnectTransport({ ...options, useBinaryFormat: true });
  }
}

async function createHandler(
  args: GatewayArguments,
  transport: Transport,
  log: RequestLog,
  write: WriteLog,
): Promise<NodeHandler> {
  const { registry, tables, warnings } = await loadContract(args, transport);
  for (const warning of warnings) write({ event: "warning", warning });
  write({
    event: "routes",
    services: tables.length,
    routes: tables.reduce((sum, { routes }) => sum + routes.length, 0),
  });
  return createHttpHandler({
    ...args.reading,
    codecs: args.protobuf ? [protobufCodec] : [],
    tables,
    transport,
    jsonOptions: { registry },
    readMaxBytes: args.maxBodyBytes,
    heartbeatIntervalMs: args.heartbeatMs,
    trailersAsHeaders: true,
    ...(args.maxTimeoutMs !== undefined && { maxTimeoutMs: args.maxTimeoutMs }),
    onResponse: (_, response) => log.note(response),
    forward: {
      defaultTimeoutMs: args.timeoutMs,
      retries: args.retries,
      trustForwarded: args.trustForwarded,
      onUpstreamError: (error) =>
        write({ event: "upstream error", reason: error instanceof Error ? error.message : String(error) }),
    },
  });
}

async function readTls({ tls }: GatewayArguments): Promise<TlsFiles | undefined> {
  return tls && { cert: await readFile(tls.cert), key: await readFile(tls.key) };
}

function respond(response: NodeResponse, status: number, text: string): void {
  response.statusCode = status;
  response.setHeader("content-type", "text/plain; charset=utf-8");
  response.setHeader("cache-control", "no-store");
  response.end(`${text}\n`);
}
