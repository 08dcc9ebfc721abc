/** The parts that both APIs have in common: the layers around their RPCs, from the socket inwards. */
import type { ConnectError, ConnectRouter, ContextValues, HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { createHttpHandler, createUnaryHandler } from "connect-http-routes";
import { addHealth, Health } from "../../connect-grpc-health/index.ts";
import { addReflection } from "../../connect-grpc-reflection/index.ts";
import { withCors } from "../../platform/listener/cors.ts";
import {
  type Handler,
  type HttpRequest,
  type HttpResponse,
  type Responder,
  type Route,
  WAITED_MS,
  type WritableResponse,
} from "../../platform/listener/handler.ts";
import {
  headerSetter,
  type SecurityHeaders,
  type SetHeaders,
  securityHeaders,
  withAuthority,
  withNoStore,
  withOneHost,
  withPages,
  withRoute,
  withSecurityHeaders,
} from "../../platform/listener/layers.ts";
import { keepOutput } from "../../platform/listener/output.ts";
import { healthz, publicJson, type Render, readyz } from "../../platform/listener/pages.ts";
import { NodeRequestSource } from "../../platform/listener/request-source.ts";
import { proxyTrust } from "../../platform/net/proxy-trust.ts";
import { subnetOf } from "../../platform/net/subnet.ts";
import { acceptCompression, compressMinBytes, jsonOptions } from "../api/connect-options.ts";
import { dropFarDeadline } from "../api/deadlines.ts";
import { toOurError, withOurErrors } from "../api/errors/framework-errors.ts";
import { apiErrorEncoder } from "../api/errors/oauth-errors.ts";
import { unknownGrpcMethod } from "../api/errors/refused-calls.ts";
import { admissionControl, type Gate, gatesInOrder, refusalOfEncoding } from "../api/gates/gates.ts";
import { stallTolerances } from "../api/limits/overload.ts";
import { contextOf, RequestContext, requestContextOf } from "../api/request-context.ts";
import { withSmallMessages } from "../api/router.ts";
import type { Config } from "../config/config.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { Telemetry } from "../observability/telemetry/start-telemetry.ts";
import { type ApiRoutes, type OfferedService, routesOf, streamsOf } from "./offered-service.ts";

export type ApiDeps = {
  readonly jwks: () => string;
  /** Resolves when requests can be served, and what they store is durable. */
  readonly ready: () => Promise<void>;
  readonly metrics: Metrics;
  /** Aborted when load balancers must stop sending requests. */
  readonly draining: AbortSignal;
  /** Aborted when streams must end. */
  readonly stopping: AbortSignal;
  readonly onUnavailable: (error: Error) => void;
  /** Returns whether an ordinary call is accepted, or refused because of overload. */
  readonly accept: () => boolean;
  readonly log: Logger;
  readonly telemetry?: Telemetry | undefined;
};

type ApiParts = {
  readonly services: readonly OfferedService[];
  readonly reflection: boolean;
  /** The gates of this API, in order. They come after admission control. */
  readonly gates: readonly Gate[];
  /** Plain pages, and aliases of paths that the API serves. */
  readonly pages: readonly (readonly [path: string, render: Render | string])[];
  readonly notFound: Responder;
  readonly badRequest: Responder;
  /** Handles some requests without RPC, and passes the others to `rpc`. */
  readonly route?: (rpc: Handler) => Route;
  /** Returns whether pages of another origin may call; absent if none may. */
  readonly isAllowed?: (origin: string) => boolean;
  /** Refuses requests before anything else is done. @param refusal makes the handler of a refusal from its response */
  readonly around?: (api: Handler, refusal: (otherwise: Responder) => Handler) => Handler;
};

/** How many health watches of an API may be open. Anybody may open one, but few have a reason to. */
const MAX_HEALTH_WATCHERS = 100;

type CallOptions = ReturnType<typeof callOptions>;

/**
 * Returns the handler of a listener. Its layers, from the socket inwards:
 * 1. `around` of the API: refusals by host
 * 2. refusal of requests that name two hosts
 * 3. pages, and aliases of paths
 * 4. spans of requests
 * 5. `route` of the API
 * 6. CORS
 * 7. JSON routes
 * 8. unary calls of the Connect protocol
 * 9. all other calls, by connect-node
 * Each is made with the one inside it, so the last comes first. `headed` sets the headers of 1, 2, 5 and 9; the others set their own.
 */
export function apiHandler(config: Config, deps: ApiDeps, parts: ApiParts): Handler {
  const { route, around = (api) => api } = parts;
  const headersFor = headersOf(config);
  const headed = (handler: Handler) => withSecurityHeaders(headersFor, handler);
  const refusal = (otherwise: Responder) => headed(withNoStore(otherwise));
  const setHeaders = headerSetter(headersFor);
  const options = callOptions(config, deps, parts);
  const reports = { onBug: options.onBug, onUnavailable: deps.onUnavailable };
  const routes = routesOf(parts.services, { metrics: deps.metrics, reports });

  const rpc = rpcHandler(config, deps, parts, routes, options); // 9
  const unary = unaryHandler(headed(rpc), options, routes, setHeaders); // 8
  const json = jsonRoutes(unary, parts, routes, options, setHeaders); // 7
  const crossOrigin = withCors(parts.isAllowed, headersFor, json); // 6
  const routed = route === undefined ? crossOrigin : withRoute(route(rpc), headed, crossOrigin); // 5
  const traced = deps.telemetry?.traceRequests(routed) ?? routed; // 4
  const paged = withPages(pagesOf(config, deps, parts), headersFor, traced); // 3
  const ofOneHost = withOneHost(paged, refusal(parts.badRequest)); // 2
  return around(ofOneHost, refusal); // 1
}

function pagesOf({ jwksMaxAgeMs }: Config, { jwks, ready, draining }: ApiDeps, { pages }: ApiParts) {
  return new Map<string, Render | string>([
    ["/healthz", healthz],
    ["/readyz", () => readyz(ready, () => draining.aborted)],
    ["/.well-known/jwks.json", () => publicJson(jwks, jwksMaxAgeMs / 1000)],
    ...pages,
  ]);
}

/** Serves every kind of call by connect-node. */
function rpcHandler(config: Config, deps: ApiDeps, parts: ApiParts, routes: ApiRoutes, options: CallOptions): Handler {
  const createConnect = () => {
    const all = (router: ConnectRouter) =>
      withOurErrors(withProbes(routes(router), config, deps, parts), options.onBug);
    return connectNodeAdapter({ ...options, routes: all, acceptCompression, fallback: notFound(parts) });
  };
  // The first stream, gRPC probe or unknown path creates it, because it takes half a megabyte that many instances never need.
  let connect: Handler | undefined;
  const streams = streamsOf(parts.services);
  const call: Handler = (request, response) => {
    dropFarDeadline(request);
    if (streams.has(request.url ?? "")) keepOutput(request, response);
    connect ??= createConnect();
    connect(request, response);
  };
  return withNoStore(withAuthority(call, parts.badRequest));
}

/** Serves unary calls of the Connect protocol without connect-node, and passes all other requests to `rpc`. */
function unaryHandler(rpc: Handler, options: CallOptions, routes: ApiRoutes, setHeaders: SetHeaders): Handler {
  const unary = createUnaryHandler({
    ...options,
    acceptCompression,
    routes,
    translateError: (error, call) => toOurError(error, call, options.onBug),
    onResponse: (headers, request) => setHeaders(headers, { request }),
    fallback: rpc,
  });
  const call: Handler = (request, response) => {
    dropFarDeadline(request);
    unary(request, response);
  };
  return withAuthority(call, rpc);
}

function headersOf({ tlsCertFile, trustProxy, hstsMaxAgeMs }: Config): SecurityHeaders {
  return securityHeaders({ tls: tlsCertFile !== undefined, trust: proxyTrust(trustProxy), hstsMaxAgeMs });
}

function notFound({ notFound: otherwise }: ApiParts) {
  return (
    request: Pick<HttpRequest, "method" | "headers">,
    response: WritableResponse & Pick<HttpResponse, "setHeader">,
  ) => {
    const unknown = unknownGrpcMethod(request.method, request.headers["content-type"]);
    if (unknown === undefined) return otherwise(request, response);
    // For an unknown method, gRPC requires a response that has trailers alone. Node sends such a response only without `writeHead`.
    for (const name in unknown) response.setHeader(name, unknown[name] ?? "");
    response.end();
  };
}

/** Adds the services that probes and tools of gRPC call. */
function withProbes(router: ConnectRouter, config: Config, deps: ApiDeps, { services, reflection }: ApiParts) {
  const { ready, draining } = deps;
  const health = new Health({ services: services.map(({ service }) => service), probe: ready });
  if (draining.aborted) health.shutdown();
  else draining.addEventListener("abort", () => health.shutdown());
  const clientOf = (context: HandlerContext) => subnetOf(requestContextOf(context).source.address() ?? "");
  const small = withSmallMessages(router, config.maxBodyBytes);
  addHealth(small, health, { maxWatchers: MAX_HEALTH_WATCHERS, clientOf });
  if (reflection) addReflection(small);
  return router;
}

/** Returns the rules for every call, RPC or JSON: the gates in order, then the interceptors that trace. */
function callOptions(config: Config, deps: ApiDeps, { gates }: ApiParts) {
  const { log, telemetry } = deps;
  const onBug = (err: unknown, method?: string, values?: ContextValues) =>
    log.error({ event: "bug", err, method, ...contextOf(values)?.correlation() }, "bug");
  const trust = proxyTrust(config.trustProxy);
  const admit = admissionControl(deps.accept, stallTolerances(config.reuseIntervalMs));
  // The routes of the HTTP layer check the encoding of a message themselves.
  const rpcGates = gatesInOrder([admit, ...gates, refusalOfEncoding]);
  return {
    onBug,
    refuse: gatesInOrder([admit, ...gates]),
    requestGate(context: HandlerContext) {
      const refused = rpcGates(context);
      return refused instanceof Promise ? refused.then(throwError) : throwError(refused);
    },
    interceptors: [...(telemetry?.interceptors ?? [])],
    contextValues: (request: HttpRequest) =>
      new RequestContext(() => new NodeRequestSource(request, trust, telemetry?.traceId), request[WAITED_MS]),
    jsonOptions,
    compressMinBytes,
    readMaxBytes: config.maxBodyBytes,
    shutdownSignal: deps.stopping,
  };
}

function throwError(error: ConnectError | undefined): undefined {
  if (error !== undefined) throw error;
}

/** Switches the limits of the HTTP layer off: overload control limits the number of calls, and the listener limits the time for a body. */
const BOUNDS_ELSEWHERE = { maxCalls: Number.POSITIVE_INFINITY, bodyTimeoutMs: Number.POSITIVE_INFINITY };

/** Serves the JSON routes of an API, which the contract's annotations define, and passes all other requests to `rpc`. */
function jsonRoutes(
  rpc: Handler,
  { services }: ApiParts,
  routes: ApiRoutes,
  options: CallOptions,
  setHeaders: SetHeaders,
): Handler {
  const tables = services.flatMap(({ table }) => table ?? []);
  if (tables.length === 0) return rpc;
  return createHttpHandler({
    ...options,
    ...BOUNDS_ELSEWHERE,
    routes,
    tables,
    failureEncoder: apiErrorEncoder(options.onBug),
    onInternalError() {}, // The encoder reports bugs.
    onResponse: setHeaders,
    fallback: rpc,
  });
}
