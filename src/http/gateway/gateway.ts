import { readFile } from "node:fs/promises";
import type { Transport } from "@connectrpc/connect";
import { protobufCodec } from "../codec/content-codec.ts";
import { createHttpHandler, type NodeHandler } from "../node/node-handler.ts";
import type { NodeResponse } from "../node/node-response.ts";
import type { GatewayArguments } from "./arguments.ts";
import { loadContract } from "./descriptors.ts";
import { type GatewayListener, listen, type TlsFiles } from "./listen.ts";
import { checkReadiness } from "./readiness.ts";
import { createRequestLog, type RequestLog, type WriteLog } from "./request-log.ts";
import { createUpstream } from "./upstream.ts";

export interface Gateway {
  readonly port: number;
  /** Reads descriptors, service config and certificates again. What was served stays if that fails, which is logged. */
  reload(): Promise<void>;
  close(): Promise<void>;
}

/** @throws Error if the contract cannot be loaded or the port is taken */
export async function startGateway(args: GatewayArguments, write: WriteLog): Promise<Gateway> {
  const upstream = await createUpstream(args);
  const { transport } = upstream;
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
      upstream.close();
    },
  };
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
    maxTimeoutMs: args.maxTimeoutMs,
    onResponse: (_, response) => log.note(response),
    forward: {
      defaultTimeoutMs: args.timeoutMs,
      retries: args.retries,
      trustForwarded: args.trustForwarded,
      onUpstreamError: (error) => write({ event: "upstream error", reason: reasonsOf(error) }),
    },
  });
}

/** The messages of an error and its causes: that of a connection says the least. */
function reasonsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause === undefined ? error.message : `${error.message}: ${reasonsOf(error.cause)}`;
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
