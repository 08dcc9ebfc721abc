/** Serves the RPCs of a remote server as JSON over HTTP, with the listener of the session service and all of its limits. */
import { cors as connectCors, type Transport } from "@connectrpc/connect";
import { createHttpHandler, type NodeHandler, problemEncoder, protobufCodec } from "connect-http-routes";
import type { Taken } from "../platform/files/follow.ts";
import { readCertificate } from "../platform/listener/certificate-files.ts";
import { withCors } from "../platform/listener/cors.ts";
import { type Handler, type Responder, respond } from "../platform/listener/handler.ts";
import { withOneHost, withPages } from "../platform/listener/layers.ts";
import { healthz, type Page, type Render } from "../platform/listener/pages.ts";
import { resources } from "../platform/listener/resources.ts";
import type { GatewayArguments } from "./arguments.ts";
import { loadContract } from "./descriptors.ts";
import { followCertificates, followContract } from "./follow-files.ts";
import type { Metrics } from "./metrics.ts";
import { openGatewayListener, withinResources } from "./open-listener.ts";
import { fromOwnPages } from "./own-pages.ts";
import { createRequestLog, type RequestLog, reasonsOf, type WriteLog, withBudget } from "./request-log.ts";
import { checkReadiness, createUpstream, type Upstream } from "./upstream.ts";
import { readUpstreamTls } from "./upstream-tls.ts";

export interface Gateway {
  readonly port: number;
  /** Reads descriptors and service config again. If that fails, the failure is logged and the old ones stay in use. */
  reload(): Promise<void>;
  close(): Promise<void>;
}

/** How long connections without a request stay open during a drain, in milliseconds, because a request may be on its way. */
const LINGER_MS = 1_000;

/** @throws Error if the descriptors or certificates cannot be loaded or the port is taken */
export async function startGateway(given: GatewayArguments, writeLine: WriteLog): Promise<Gateway> {
  const args = withinResources(given, resources());
  const { write, writeRequest, end } = withBudget(writeLine, args.logRate);
  const own = args.tls && (await readCertificate({ certFile: args.tls.cert, keyFile: args.tls.key }));
  const ofUpstream = await readUpstreamTls(args);
  const onFailure = (authority: string, error: unknown) =>
    write({ event: "upstream error", upstream: authority, reason: reasonsOf(error) });
  const upstream = createUpstream(args, onFailure, ofUpstream?.current);
  const metrics = args.metrics && (await (await import("./metrics.ts")).openMetrics(args.metrics, write));
  const tracing = args.otlp && (await (await import("./tracing.ts")).startTracing({ ...args, otlp: args.otlp }, write));
  const log = createRequestLog(writeRequest, args.log, metrics?.observe, tracing?.traceId);
  const transport = tracing?.traceCalls(upstream.transport) ?? upstream.transport;
  const contract = await serveContract(args, () => createHandler(args, transport, log, write, metrics), write);
  let draining = false;
  const pages = new Map<string, Render>([
    [args.livePath, healthz],
    [args.readyPath, () => (draining ? DRAINING : readiness(upstream))],
  ]);
  const entry: Handler = withOneHost(
    withPages(pages, () => NO_STORE, readableByOrigins(args, fromOwnPages(args, write, contract.handler))),
    sendTwoHosts,
  );
  const listener = await openGatewayListener(args, own?.current, write);
  const logged = args.log === "none" && metrics === undefined ? entry : log.wrap(entry);
  listener.serve(tracing?.traceRequests(logged) ?? logged);
  const stopFollowing = followCertificates({ own, ofUpstream }, listener, upstream, write);
  if (metrics !== undefined) write({ event: "serving metrics", port: metrics.listener.port });
  write({ event: "listening", port: listener.port, upstream: args.upstreams.join(" ") });
  return {
    port: listener.port,
    reload: contract.reload,
    async close() {
      draining = true;
      contract.stopFollowing();
      stopFollowing();
      await listener.close(args.drainMs, Math.min(LINGER_MS, args.drainMs));
      await metrics?.listener.close(0, 0);
      upstream.close();
      await tracing?.shutdown();
      end();
    },
  };
}

/** Serves the routes of the descriptors, and those of the new ones when their files change. */
async function serveContract(args: GatewayArguments, create: () => Promise<NodeHandler>, write: WriteLog) {
  // The present state is recorded before the files are read, so that a change during the first reading is noticed afterwards.
  const follow = await followContract(args);
  let handler = await create();
  const load = async (): Promise<Taken<Error>> => {
    try {
      handler = await create();
      write({ event: "reloaded" });
      return { ok: true };
    } catch (error) {
      return { ok: false, reason: error instanceof Error ? error : new Error(String(error)) };
    }
  };
  const report = ({ message }: Error) => write({ event: "reload failed", reason: message });
  return {
    handler: (...exchange: Parameters<NodeHandler>) => handler(...exchange),
    async reload() {
      const taken = await load();
      if (!taken.ok) report(taken.reason);
    },
    stopFollowing: follow(load, report),
  };
}

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/** Lets scripts of the allowed origins read responses, if that is configured. */
function readableByOrigins({ cors, origins }: GatewayArguments, next: Handler): Handler {
  if (cors === undefined || origins === false) return next;
  const exposed = [...connectCors.exposedHeaders, "Retry-After", "WWW-Authenticate", ...cors.exposed];
  return withCors(
    (origin) => origins.includes(origin),
    () => [],
    next,
    { methods: METHODS, exposed },
  );
}

const NO_STORE = [["cache-control", "no-store"]] as const;

const text = (status: number, body: string): Page => ({ status, type: "text/plain", body: `${body}\n` });

const DRAINING = text(503, "draining");

async function readiness(upstream: Upstream): Promise<Page> {
  const state = await checkReadiness(upstream);
  return state.ready ? text(200, "ok") : text(503, state.reason);
}

/** The body of the response to a request that names two hosts. It has the format in which the HTTP layer encodes failures by default. */
const TWO_HOSTS = JSON.stringify({ code: 3, message: "the request names two hosts", details: [] });

const sendTwoHosts: Responder = (_request, response) =>
  respond(response, 400, { "content-type": "application/json", "content-length": TWO_HOSTS.length }, TWO_HOSTS);

async function createHandler(
  args: GatewayArguments,
  transport: Transport,
  log: RequestLog,
  write: WriteLog,
  metrics: Metrics | undefined,
): Promise<NodeHandler> {
  const { registry, tables, warnings } = await loadContract(args, transport);
  for (const warning of warnings) write({ event: "warning", warning });
  write({
    event: "routes",
    services: tables.length,
    routes: tables.reduce((sum, { routes }) => sum + routes.length, 0),
  });
  return createHttpHandler({
    ...args.tables,
    ...args.bounds,
    codecs: args.protobuf ? [protobufCodec] : [],
    tables,
    transport,
    jsonOptions: { ...args.json, registry },
    readMaxBytes: args.maxBodyBytes,
    heartbeatIntervalMs: args.heartbeatMs,
    ndjsonHeartbeats: args.ndjsonHeartbeats,
    trailersAsHeaders: true,
    ...(args.problemDetails && { failureEncoder: problemEncoder() }),
    maxTimeoutMs: args.maxTimeoutMs,
    onInternalError: (error, rpc) =>
      write({ event: "internal error", ...(rpc && { rpc: rpc.name }), reason: reasonsOf(error) }),
    ...((args.log !== "none" || args.metrics !== undefined) && { onResponse: (_, response) => log.note(response) }),
    forward: {
      defaultTimeoutMs: args.timeoutMs,
      retries: args.retries,
      trustForwarded: args.trustForwarded,
      onUpstreamError(error) {
        metrics?.upstreamFailed();
        write({ event: "upstream error", reason: reasonsOf(error) });
      },
    },
  });
}
