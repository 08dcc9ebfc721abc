/** What both APIs have in common: the layers around their RPCs, from the socket inwards. */
import type { ConnectRouter, ContextValues, HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { createHttpHandler, createUnaryHandler, type RouteTable } from "connect-http-routes";
import { acceptCompression, compressMinBytes } from "../api/compression.ts";
import { dropFarDeadline } from "../api/deadlines.ts";
import { errorTranslation } from "../api/errors/connect-errors.ts";
import { toOurError, withOurErrors } from "../api/errors/framework-errors.ts";
import { apiErrorEncoder } from "../api/errors/oauth-errors.ts";
import { beginReading } from "../api/errors/reading.ts";
import { unknownGrpcMethod } from "../api/errors/refused-calls.ts";
import { admissionControl } from "../api/interceptors/admission.ts";
import { refuseUnknownEncoding } from "../api/interceptors/encodings.ts";
import { requestValidation, type ValidatedService } from "../api/interceptors/request-validation.ts";
import { jsonOptions } from "../api/json.ts";
import { withSmallMessages } from "../api/message-sizes.ts";
import { contextValuesOf, correlationOf, requestContextOf } from "../api/request-context.ts";
import type { Config } from "../config/config.ts";
import { addHealth, Health } from "../grpc-health/index.ts";
import { addReflection } from "../grpc-reflection/index.ts";
import { stallTolerances } from "../limits/stall.ts";
import { withAuthority, withOneHost } from "../listener/authority.ts";
import type { Handler, Request, Responder, Response, WritableResponse } from "../listener/exchange.ts";
import { withNoStore } from "../listener/no-store.ts";
import { keepOutput } from "../listener/output.ts";
import { healthz, publicJson, type Render, readyz, withPages } from "../listener/pages.ts";
import { NodeRequestSource } from "../listener/request-source.ts";
import { type Route, withRoute } from "../listener/route.ts";
import { type SecurityHeaders, securityHeaders, withSecurityHeaders } from "../listener/security-headers.ts";
import { subnetOf } from "../net/subnet.ts";
import type { Logger } from "../observability/logger.ts";
import { measure } from "../observability/measure.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";

export type ApiDeps = {
  /** The public keys, as JSON. */
  readonly jwks: () => string;
  /** Resolves when requests can be served and what they store is kept. */
  readonly ready: () => Promise<void>;
  readonly metrics: Metrics;
  /** Aborted when load balancers are to send no more. */
  readonly draining: AbortSignal;
  /** Aborted when streams are to end. */
  readonly stopping: AbortSignal;
  readonly onUnavailable: (error: Error) => void;
  /** Accepts an ordinary call, or not: overload control. */
  readonly accept: () => boolean;
  readonly log: Logger;
  /** Undefined: off. */
  readonly telemetry?: Telemetry | undefined;
};

/** Registers the services of an API. */
export type ApiRoutes = (router: ConnectRouter) => ConnectRouter;

/** The parts in which the two APIs differ. */
type ApiParts = {
  readonly services: readonly ValidatedService[];
  readonly routes: ApiRoutes;
  /** Whether the API describes itself by gRPC server reflection. */
  readonly reflection: boolean;
  /** Refuses calls before their message is read: by throwing or rejecting. Comes after admission control. */
  readonly gate: (context: HandlerContext) => undefined | Promise<void>;
  /** Pages beside those of both APIs. */
  readonly pages: readonly (readonly [path: string, render: Render])[];
  readonly notFound: Responder;
  readonly badRequest: Responder;
  /** Serves some requests without RPC, or passes them on to it. */
  readonly route?: (rpc: Handler) => Route;
  /** Puts JSON routes before the RPCs. They set `headersFor` themselves. */
  readonly json?: (rpc: Handler, options: CallOptions, headersFor: SecurityHeaders) => Handler;
  /** Refuses requests before anything else. @param refuse makes a handler of a response */
  readonly around?: (api: Handler, refuse: (otherwise: Responder) => Handler) => Handler;
};

/** Watches of an API's health: anybody may open one, and few have a reason to. */
const MAX_HEALTH_WATCHERS = 100;

type CallOptions = ReturnType<typeof callOptions>;

/**
 * The handler of a listener. Its layers from the outside: refusals by host, pages, `route`, `json`, RPC. Each response passes one
 * `headed`, but for those of `json`.
 */
export function apiHandler(config: Config, deps: ApiDeps, parts: ApiParts): Handler {
  const { route = () => () => undefined, json = (rpc) => rpc, around = (api) => api } = parts;
  const headersFor = headersOf(config);
  const headed = (handler: Handler) => withSecurityHeaders(headersFor, handler);
  const refuse = (otherwise: Responder) => headed(withNoStore(otherwise));
  const options = callOptions(config, deps, parts);
  const connect = connectNodeAdapter({
    ...options,
    routes: (router) => withOurErrors(withProbes(parts.routes(router), config, deps, parts), options.onBug),
    acceptCompression,
    fallback: notFound(parts),
  });
  const streams = streamsOf(parts);
  const call: Handler = (request, response) => {
    dropFarDeadline(request);
    if (streams.has(request.url ?? "")) keepOutput(request, response);
    connect(request, response);
  };
  const rpc = withNoStore(withAuthority(call, parts.badRequest));
  const unary = unaryHandler(headed(rpc), options, parts, headersFor);
  const api = withRoute(route(rpc), headed, json(unary, options, headersFor));
  const pages = new Map<string, Render>([
    ["/healthz", healthz],
    ["/readyz", () => readyz(deps.ready, () => deps.draining.aborted)],
    ["/.well-known/jwks.json", () => publicJson(deps.jwks, config.jwksMaxAgeMs / 1000)],
    ...parts.pages,
  ]);
  const served = withPages(pages, headersFor, deps.telemetry?.traceRequests(api) ?? api);
  return around(withOneHost(served, refuse(parts.badRequest)), refuse);
}

/** Serves unary calls of the Connect protocol without connect-node; anything else goes to `rpc`. */
function unaryHandler(rpc: Handler, options: CallOptions, { routes }: ApiParts, headersFor: SecurityHeaders): Handler {
  const unary = createUnaryHandler({
    ...options,
    acceptCompression,
    routes,
    translateError: (error, call) => toOurError(error, call, options.onBug),
    // They cost less here than if the layers around `rpc` set them.
    onResponse(headers, request) {
      headers.set("cache-control", "no-store");
      for (const [name, value] of headersFor(request)) headers.set(name, value);
    },
    fallback: rpc,
  });
  const call: Handler = (request, response) => {
    dropFarDeadline(request);
    unary(request, response);
  };
  return withAuthority(call, rpc);
}

/** The paths of the RPCs whose responses are streams. */
function streamsOf({ services }: ApiParts): ReadonlySet<string> {
  const methods = services.flatMap(({ service }) => service.methods);
  const streams = methods.filter(({ methodKind }) => methodKind === "server_streaming");
  return new Set(streams.map(({ name, parent }) => `/${parent.typeName}/${name}`));
}

/** The header fields of every response, as the configuration has them. */
function headersOf({ tlsCertFile, trustProxy, hstsMaxAgeMs }: Config): SecurityHeaders {
  return securityHeaders({ tls: tlsCertFile !== undefined, trustedProxies: trustProxy, hstsMaxAgeMs });
}

function notFound({ notFound: otherwise }: ApiParts) {
  return (request: Pick<Request, "method" | "headers">, response: WritableResponse & Pick<Response, "setHeader">) => {
    const unknown = unknownGrpcMethod(request.method, request.headers["content-type"]);
    if (unknown === undefined) return otherwise(request, response);
    // writeHead is not called, because Node then sends the trailers alone, as gRPC wants them.
    for (const name in unknown) response.setHeader(name, unknown[name] ?? "");
    response.end();
  };
}

/** Beside the RPCs: what gRPC's own probes and tools call. */
function withProbes(router: ConnectRouter, config: Config, deps: ApiDeps, { services, reflection }: ApiParts) {
  const { ready, draining } = deps;
  const health = new Health({ services: services.map(({ service }) => service), probe: ready });
  draining.addEventListener("abort", () => health.shutdown());
  const clientOf = (context: HandlerContext) => subnetOf(requestContextOf(context).source.address() ?? "");
  const small = withSmallMessages(router, config.maxBodyBytes);
  addHealth(small, health, { maxWatchers: MAX_HEALTH_WATCHERS, clientOf });
  if (reflection) addReflection(small);
  return router;
}

/** The last step of the request gate. */
function passed(context: HandlerContext): void {
  refuseUnknownEncoding(context);
  beginReading(context.values);
}

/** Rules of every call, RPC or JSON. Interceptors run in this order: each sees the errors of those after it. */
function callOptions(config: Config, deps: ApiDeps, { services, gate }: ApiParts) {
  const { log, metrics, onUnavailable, telemetry } = deps;
  const onBug = (err: unknown, method?: string, values?: ContextValues) =>
    log.error({ event: "bug", err, method, ...correlationOf(values) }, "bug");
  const admit = admissionControl(deps.accept, stallTolerances(config.reuseIntervalMs));
  return {
    onBug,
    requestGate(context: HandlerContext) {
      admit(context);
      const gated = gate(context);
      return gated === undefined ? passed(context) : gated.then(() => passed(context));
    },
    interceptors: [
      ...(telemetry?.interceptors ?? []),
      measure(metrics),
      errorTranslation({ onBug, onUnavailable }),
      requestValidation(services),
    ],
    contextValues: (request: Request) =>
      contextValuesOf(new NodeRequestSource(request, config.trustProxy, telemetry?.traceId)),
    jsonOptions,
    compressMinBytes,
    readMaxBytes: config.maxBodyBytes,
    shutdownSignal: deps.stopping,
  };
}

/** Overload control decides which calls are served, and the listener how long a body may take. */
const BOUNDS_ELSEWHERE = { maxCalls: Number.POSITIVE_INFINITY, bodyTimeoutMs: Number.POSITIVE_INFINITY };

/** Serves the JSON routes of an API, those of the contract's annotations; anything else goes to `rpc`. */
export function jsonRoutes(
  rpc: Handler,
  routes: ApiRoutes,
  tables: readonly RouteTable[],
  options: CallOptions,
  headersFor: SecurityHeaders,
): Handler {
  return createHttpHandler({
    ...options,
    ...BOUNDS_ELSEWHERE,
    routes,
    tables,
    failureEncoder: apiErrorEncoder(options.onBug),
    // The headers of the layers around `rpc`. Set here, among the others, they cost next to nothing; before the handler runs,
    // a thirtieth of a refresh.
    onResponse(headers, { request }) {
      headers.set("cache-control", "no-store");
      for (const [name, value] of headersFor(request)) headers.set(name, value);
    },
    fallback: rpc,
  });
}
