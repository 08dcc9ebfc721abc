import { create } from "@bufbuild/protobuf";
import { type ContextValues, createContextValues } from "@connectrpc/connect";
import { Bounds } from "./bounds.ts";
import { Call, readTimeout } from "./call/call.ts";
import { peerAddress } from "./call/context-keys.ts";
import { createEndpoints, type Endpoint } from "./call/endpoints.ts";
import type { Exchange } from "./call/exchange.ts";
import { callServerStreaming, callUnary } from "./call/invoke.ts";
import { type RecordedRpc, recordRoutes } from "./call/recorder.ts";
import { createCodecs } from "./codec/content-codec.ts";
import type { HandlerOptions } from "./options.ts";
import { readRequest } from "./request/read-request.ts";
import { openRequestStream } from "./request/read-request-stream.ts";
import { serveRequestStream } from "./request/serve-request-stream.ts";
import type { Serving } from "./request/serving.ts";
import { type Failure, FailureError, failures } from "./response/failure.ts";
import { type ResponseOptions, Responses } from "./response/responses.ts";
import { sendStream } from "./response/stream-response.ts";
import { createMatcher, type Match, type Matcher } from "./routes/matcher.ts";
import { createMethodOverride, type MethodOverride } from "./routes/method-override.ts";
import type { Route, RouteTable } from "./routes/model.ts";
import { createPathPrefix } from "./routes/path-prefix.ts";
import { forwardTo } from "./upstream/forward.ts";
import { unprefixMetadata } from "./upstream/metadata.ts";

/** Serves exchanges: decodes the request, calls the implementation, encodes the response. */
interface RequestHandler<Source> {
  /** Finds the route of a request. */
  match(method: string, rawPath: string): Match;
  /** Returns the method that replaces a request's own (`X-HTTP-Method-Override`). Undefined if no table of routes allows that. */
  readonly methodOverride: MethodOverride | undefined;
  /** Responds to a request. Never rejects. */
  serve(exchange: Exchange<Source>, match: Match, query: string): Promise<void>;
}

/** The default limit of a request body, in bytes, before and after decompression: 4 MiB, the default of gRPC. */
const DEFAULT_READ_MAX_BYTES = 4 * 1024 * 1024;

/** @throws Error if a table names a service that is not registered, or if two routes match the same requests */
export function createRequestHandler<Source>(options: HandlerOptions<Source>): RequestHandler<Source> {
  const tables = tablesOf(options);
  const { readMaxBytes = DEFAULT_READ_MAX_BYTES } = options;
  const recorded = recordRoutes(implementationOf(options, tables), { ...options, readMaxBytes });
  const endpoints = createEndpoints(recorded, { ...options, tables });
  const tablesWithEndpoints = tables.map((table) => ({
    ...table,
    routes: table.routes.filter((route) => endpoints.has(route)),
  }));
  const matcher = createMatcher(tablesWithEndpoints, options.multiSegmentDecoding);
  const override = createMethodOverride(tablesWithEndpoints, options.methodOverride);
  return { ...belowPrefix(options.requestPathPrefix, matcher, override), serve: createServe(options, endpoints) };
}

/**
 * Returns the function that begins the calls of requests and serves them.
 *
 * Node calls it from within its HTTP parser, as soon as a head is parsed. What follows an `await undefined` runs after the parser has also
 * read the rest of what has arrived: a small body, or what makes the request malformed.
 */
function createServe<Source>(options: HandlerOptions<Source>, endpoints: ReadonlyMap<Route, Endpoint>) {
  const { refuse, contextValues, transport } = options;
  const codecs = createCodecs(options.codecs ?? []);
  const responses = new Responses(withHeadWait(options), codecs);
  const bounds = new Bounds(options);

  /** Serves a call until it ends. */
  async function serveCall(serving: Serving<Source>): Promise<void> {
    const { exchange, endpoint, call } = serving;
    const { rpc, method } = endpoint;
    try {
      await undefined; // for a small body
      const gated = refuse === undefined ? passRequestGate(rpc, call) : refuse(call);
      const refused = gated instanceof Promise ? await gated : gated;
      if (refused !== undefined) {
        call.end(refused);
        return responses.fail(exchange, endpoint, call, refused);
      }
      call.exposeSignal();
      if (rpc.spec.kind === "client_streaming" || rpc.spec.kind === "bidi_streaming") {
        return await serveRequestStream(responses, serving, openRequestStream(serving));
      }
      const reading = readRequest(serving);
      const input = reading instanceof Promise ? await reading : reading;
      if (rpc.spec.kind === "server_streaming") {
        const messages = await callServerStreaming(rpc, call, input);
        return await sendStream(responses, exchange, endpoint, call, messages);
      }
      const output = create(method.output, await callUnary(rpc, call, input));
      await responses.succeed(exchange, endpoint, call, output);
      call.end();
    } catch (error) {
      call.end(error);
      await failOnceParsed(responses, exchange, endpoint, call, error);
    } finally {
      serving.inFlight?.end();
    }
  }

  return (exchange: Exchange<Source>, match: Match, query: string): Promise<void> => {
    const endpoint = match.kind === "route" ? endpoints.get(match.route) : undefined;
    try {
      if (match.kind !== "route" || endpoint === undefined) return respondWithoutRoute(responses, exchange, match);
      const { headers, source } = exchange;
      if (endpoint.grpcMetadata) unprefixMetadata(headers);
      const call = new Call(endpoint.method, exchange, {
        timeoutMs: readTimeout(headers, endpoint.rpc.options.maxTimeoutMs),
        shutdownSignal: endpoint.rpc.options.shutdownSignal,
        contextValues: transport === undefined ? contextValues?.(source) : withPeerAddress(exchange, options),
      });
      const bytes = headers.get("content-length");
      const isSmall = bytes !== null && Number(bytes) <= SMALL_BODY_BYTES && headers.get("content-encoding") === null;
      const inFlight = isSmall && bounds.ignoreSmall ? undefined : bounds.begin();
      return serveCall({ exchange, endpoint, call, bindings: match.bindings, query, codecs, inFlight });
    } catch (error) {
      // The request has no call yet.
      return failOnceParsed(responses, exchange, endpoint, undefined, error);
    }
  };
}

/** Returns the same functions for paths below a prefix. Other paths have no route. */
function belowPrefix(prefix: string | undefined, { match }: Matcher, methodOverride: MethodOverride | undefined) {
  if (prefix === undefined) return { match, methodOverride };
  const within = createPathPrefix(prefix);
  const override: MethodOverride = (method, header, rawPath) => {
    const path = within(rawPath);
    return path === undefined || methodOverride === undefined ? method : methodOverride(method, header, path);
  };
  return {
    match: (method: string, rawPath: string): Match => {
      const path = within(rawPath);
      return path === undefined ? { kind: "no_route" } : match(method, path);
    },
    methodOverride: methodOverride && override,
  };
}

/** Up to this length, in bytes, a body usually arrives together with its head. */
const SMALL_BODY_BYTES = 4096;

/** Responds with a failure, unless Node's parser finds the rest of the request malformed and refuses it first. */
async function failOnceParsed<Source>(
  responses: Responses<Source>,
  exchange: Exchange<Source>,
  endpoint: Endpoint | undefined,
  call: Call | undefined,
  reason: unknown,
): Promise<void> {
  await undefined; // See createServe.
  responses.fail(exchange, endpoint, call, reason);
}

/** Calls the request gate of an RPC. @throws the error of a call that it refuses */
function passRequestGate({ options: { requestGate } }: RecordedRpc, call: Call): undefined | Promise<undefined> {
  const gated = requestGate?.(call);
  return gated === undefined ? undefined : Promise.resolve(gated).then(() => undefined);
}

/** Returns the context values of a call that is forwarded to a remote server, with the client's address. */
function withPeerAddress<Source>(exchange: Exchange<Source>, { contextValues }: HandlerOptions<Source>): ContextValues {
  return (contextValues?.(exchange.source) ?? createContextValues()).set(peerAddress, exchange.peerAddress);
}

/** @throws TypeError if there are none, as when a generated module does not export what is imported from it */
function tablesOf<Source>({ tables }: Partial<HandlerOptions<Source>> = {}): readonly RouteTable[] {
  if (typeof tables?.[Symbol.iterator] === "function") return [...tables];
  throw new TypeError("tables must be a list of route tables, such as [LibraryServiceRoutes]");
}

function implementationOf<Source>(options: HandlerOptions<Source>, tables: readonly RouteTable[]) {
  if (options.ndjsonHeartbeats && !options.heartbeatIntervalMs) {
    throw new TypeError("ndjsonHeartbeats needs heartbeatIntervalMs");
  }
  if (options.transport === undefined) {
    if (typeof options.routes !== "function") throw new TypeError("routes must be a function, or a transport be given");
    return options.routes;
  }
  return forwardTo(options.transport, new Set(tables.map(({ service }) => service)), options.forward);
}

/** How long the head of a forwarded response stream waits for the upstream, in ms, so that an early failure gets its own HTTP status. */
const REMOTE_HEAD_WAIT_MS = 500;

function withHeadWait<Source>(options: HandlerOptions<Source>): ResponseOptions<Source> {
  return options.transport === undefined ? options : { streamHeadWaitMs: REMOTE_HEAD_WAIT_MS, ...options };
}

/** Responds to OPTIONS. @throws FailureError for any other request without a route */
function respondWithoutRoute<Source>(
  responses: Responses<Source>,
  exchange: Exchange<Source>,
  match: Match,
): Promise<void> {
  if (match.kind !== "method_not_allowed" || exchange.method !== "OPTIONS") throw new FailureError(notFound(match));
  responses.allow(exchange, match.allow);
  return Promise.resolve();
}

function notFound(match: Match): Failure {
  switch (match.kind) {
    case "method_not_allowed":
      return failures.methodNotAllowed(match.allow);
    case "malformed":
      return failures.badRequest("path", undefined, match.reason);
    case "no_route":
    case "route":
      return failures.noRoute();
  }
}
