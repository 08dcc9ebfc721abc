import { Call } from "./call/call.ts";
import { readTimeout } from "./call/deadline.ts";
import { createEndpoints, type Endpoint } from "./call/endpoints.ts";
import type { Exchange } from "./call/exchange.ts";
import { callServerStreaming, callUnary } from "./call/invoke.ts";
import { recordRoutes } from "./call/recorder.ts";
import type { HandlerOptions } from "./options.ts";
import { decompress } from "./response/compression.ts";
import { type Failure, FailureError, failures } from "./response/failure.ts";
import { isJson } from "./response/negotiation.ts";
import { Responses } from "./response/responses.ts";
import { sendStream } from "./response/stream-response.ts";
import { createMatcher, type Match } from "./routes/matcher.ts";

/** Serves exchanges: decodes the request, calls the implementation, encodes the response. */
export interface RequestHandler<Source> {
  /** Finds the route of a request. */
  match(method: string, rawPath: string): Match;
  /** Responds to a request. Never rejects. */
  serve(exchange: Exchange<Source>, found: Match, query: string): Promise<void>;
}

/** Default limit of a request body, in bytes, before and after decompression: that of gRPC, 4 MiB. */
const DEFAULT_READ_MAX_BYTES = 4 * 1024 * 1024;

const NO_BYTES = new Uint8Array();

/** @throws Error if a table names a service that is not registered, or if two routes match the same requests */
export function createRequestHandler<Source>(options: HandlerOptions<Source>): RequestHandler<Source> {
  const tables = [...options.tables];
  const { readMaxBytes = DEFAULT_READ_MAX_BYTES } = options;
  const endpoints = createEndpoints(recordRoutes(options.routes, { ...options, readMaxBytes }), {
    tables,
    refuseUnknownQuery: options.refuseUnknownQuery ?? false,
    inferUpdateMask: options.inferUpdateMask ?? true,
  });
  const served = tables.map((table) => ({ ...table, routes: table.routes.filter((route) => endpoints.has(route)) }));
  const matcher = createMatcher(served, options.multiSegmentDecoding);
  const responses = new Responses(options);

  async function serve(exchange: Exchange<Source>, found: Match, query: string): Promise<void> {
    let endpoint: Endpoint | undefined;
    let call: Call | undefined;
    try {
      endpoint = found.kind === "route" ? endpoints.get(found.route) : undefined;
      if (found.kind !== "route" || endpoint === undefined) {
        if (found.kind !== "method_not_allowed" || exchange.method !== "OPTIONS")
          throw new FailureError(notFound(found));
        return responses.allow(exchange, found.allow);
      }
      const { rpc, method, request } = endpoint;
      call = new Call(method, exchange, {
        timeoutMs: readTimeout(exchange.headers, rpc.options.maxTimeoutMs),
        shutdownSignal: rpc.options.shutdownSignal,
        contextValues: options.contextValues?.(exchange.source),
      });
      if (rpc.options.requestGate !== undefined) await rpc.options.requestGate(call);
      // An empty header counts as absent.
      const contentType = exchange.headers.get("content-type") || null;
      if (request.body === "json" && contentType !== null && !isJson(contentType)) {
        throw new FailureError(failures.unsupportedMediaType(`the content type ${contentType} is not JSON in UTF-8`));
      }
      const readable = request.body !== "none" && exchange.hasBody;
      const body = readable ? await readBody(exchange, rpc.options.readMaxBytes, request.body === "raw") : NO_BYTES;
      const input = request.decode(found.bindings, query, body, contentType);
      if (rpc.spec.kind === "server_streaming") {
        const messages = await callServerStreaming(rpc, call, input);
        return await sendStream(responses, exchange, endpoint, call, messages);
      }
      const output = await callUnary(rpc, call, input);
      await responses.succeed(exchange, endpoint, call, endpoint.response(output));
      call.end();
    } catch (reason) {
      call?.end(reason);
      try {
        responses.fail(exchange, endpoint, call, reason);
      } catch {
        // A throwing encoder or hook must not end the process.
        exchange.sendServerError();
      }
    }
  }

  return { match: matcher.match, serve };
}

function notFound(found: Match): Failure {
  switch (found.kind) {
    case "method_not_allowed":
      return failures.methodNotAllowed(found.allow);
    case "malformed":
      return failures.badRequest("path", undefined, found.reason);
    case "no_route":
    case "route":
      return failures.noRoute();
  }
}

async function readBody<Source>(exchange: Exchange<Source>, limit: number, raw: boolean): Promise<Uint8Array> {
  const readBefore = exchange.bodyReadBefore(raw);
  if (readBefore !== undefined) {
    if (readBefore.byteLength > limit) throw new FailureError(failures.tooLarge(limit));
    return readBefore;
  }
  const encoding = exchange.headers.get("content-encoding");
  const body = await exchange.read(limit);
  return encoding === null ? body : decompress(body, encoding, limit);
}
