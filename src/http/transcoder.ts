import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { ConnectRouter, ContextValues } from "@connectrpc/connect";
import { mergeNonProtocolHeaders, type UniversalHandlerOptions } from "@connectrpc/connect/protocol";
import { Call, callServerStreaming, callUnary } from "./call.ts";
import { decompress, gzip } from "./compression.ts";
import { readTimeout } from "./deadline.ts";
import { createEndpoints, type Endpoint } from "./endpoints.ts";
import type { Exchange } from "./exchange.ts";
import { type Failure, type FailureEncoder, FailureError, failureFrom, failures, statusEncoder } from "./failure.ts";
import { HeaderMap } from "./header-map.ts";
import { createMatcher, type Match, type MultiSegmentDecoding } from "./matcher.ts";
import type { RouteTable } from "./model.ts";
import { acceptsGzip, isJson } from "./negotiation.ts";
import { recordRoutes } from "./recorder.ts";
import type { Payload } from "./response-codec.ts";
import { bytesForm, streamFormFor } from "./stream-form.ts";
import { successStatus } from "./success-status.ts";

/** What an answer is about: for hooks. */
export interface AnswerInfo<Source> {
  readonly request: Source;
  readonly method: string;
  readonly status: number;
  /** The RPC that the request named; undefined if it named none. */
  readonly rpc: DescMethod | undefined;
  /** Why there is no result; undefined if there is one. */
  readonly failure: Failure | undefined;
}

/**
 * How to serve routes. What connect-es knows too means the same here: interceptors, jsonOptions, readMaxBytes,
 * compressMinBytes, maxTimeoutMs, shutdownSignal, requestGate.
 */
export interface TranscoderOptions<Source>
  extends Partial<
    Omit<UniversalHandlerOptions, "acceptCompression" | "requireConnectProtocolHeader" | "binaryOptions">
  > {
  /** The function that registers the services, the same that a Connect adapter gets. */
  readonly routes: (router: ConnectRouter) => void;
  /** The tables of those services, generated (`*_http.ts`) or made by `createRoutes`. */
  readonly tables: Iterable<RouteTable>;
  readonly contextValues?: (request: Source) => ContextValues;
  /** Default: google.rpc.Status as JSON. */
  readonly failureEncoder?: FailureEncoder;
  /** Called last thing before any answer's headers are sent, to add to them or to take note. */
  readonly onAnswer?: (headers: Headers, answer: AnswerInfo<Source>) => void;
  /** Whether a query parameter that names no field is refused (400) rather than ignored. */
  readonly refuseUnknownQuery?: boolean;
  /** Whether the empty update mask of a PATCH is made from the fields of the body. Default: yes. */
  readonly inferUpdateMask?: boolean;
  /** Which escapes a path variable of several segments keeps. Default: `%2F` alone. */
  readonly multiSegmentDecoding?: MultiSegmentDecoding;
  /** Whether responses are compressed for whoever accepts it. Default: yes, from `compressMinBytes` on. */
  readonly compress?: boolean;
  /** Whether response trailers are sent, as headers with the prefix `trailer-`. Default: no. */
  readonly trailersAsHeaders?: boolean;
}

/** Serves exchanges: the way from a request to a message, through an implementation, and back. */
export interface Transcoder<Source> {
  /** Finds the route of a request. */
  match(method: string, rawPath: string): Match;
  /** Answers a request. Never rejects. */
  serve(exchange: Exchange<Source>, found: Match, query: string): Promise<void>;
}

const octetStream = "application/octet-stream";
const noBytes = new Uint8Array();

/** @throws Error if a table names a service that is not registered, or if two routes match the same requests */
export function createTranscoder<Source>(options: TranscoderOptions<Source>): Transcoder<Source> {
  const endpoints = createEndpoints(recordRoutes(options.routes, options), {
    tables: options.tables,
    refuseUnknownQuery: options.refuseUnknownQuery ?? false,
    inferUpdateMask: options.inferUpdateMask ?? true,
  });
  const matcher = createMatcher(options.tables, options.multiSegmentDecoding);
  const encodeFailure = options.failureEncoder ?? statusEncoder;

  async function serve(exchange: Exchange<Source>, found: Match, query: string): Promise<void> {
    let endpoint: Endpoint | undefined;
    let call: Call | undefined;
    try {
      if (found.kind !== "route") {
        if (found.kind === "method_not_allowed" && exchange.method === "OPTIONS")
          return answerOptions(exchange, found.allow);
        throw new FailureError(notFound(found));
      }
      endpoint = endpoints.get(found.route);
      if (endpoint === undefined) throw new FailureError(failures.noRoute());
      const { rpc, method, request } = endpoint;
      call = new Call(method, exchange, {
        timeoutMs: readTimeout(exchange.headers, rpc.options.maxTimeoutMs),
        shutdownSignal: rpc.options.shutdownSignal,
        contextValues: options.contextValues?.(exchange.source),
      });
      if (rpc.options.requestGate !== undefined) await rpc.options.requestGate(call);
      const contentType = exchange.headers.get("content-type");
      if (request.body === "json" && contentType !== null && !isJson(contentType)) {
        throw new FailureError(failures.unsupportedMediaType(`the content type ${contentType} is not JSON`));
      }
      const body =
        request.body !== "none" && exchange.hasBody ? await readBody(exchange, rpc.options.readMaxBytes) : noBytes;
      const input = request.decode(found.bindings, query, body, contentType);
      if (rpc.spec.kind === "server_streaming") {
        return await serveStream(exchange, endpoint, call, await callServerStreaming(rpc, call, input));
      }
      const output = await callUnary(rpc, call, input);
      await succeed(exchange, endpoint, call, endpoint.response(output));
      call.end();
    } catch (reason) {
      call?.end(reason);
      try {
        fail(exchange, endpoint, call, failureFrom(reason));
      } catch {
        // An encoder or a hook that throws must not take the process down.
        exchange.giveUp();
      }
    }
  }

  /** Until the first message is there a failure is an ordinary answer; from then on it is in band. */
  async function serveStream(
    exchange: Exchange<Source>,
    endpoint: Endpoint,
    call: Call,
    messages: AsyncIterable<Message>,
  ): Promise<void> {
    const iterator = messages[Symbol.asyncIterator]();
    let next = await iterator.next();
    const header = call.responseHeader;
    const payload = next.done ? undefined : endpoint.response(next.value);
    const form = endpoint.raw ? bytesForm : streamFormFor(exchange.headers.get("accept"));
    if (!header.has("content-type"))
      header.set("content-type", form.contentType ?? payload?.contentType ?? octetStream);
    if (!header.has("cache-control")) header.set("cache-control", "no-cache");
    header.append("vary", "Accept");
    header.delete("content-length");
    const status = call.lastValues.get(successStatus);
    hook(exchange, endpoint, status, header, undefined);
    if (exchange.method === "HEAD") {
      exchange.send(status, header.lines(), undefined);
      call.end();
      await iterator.return?.();
      return;
    }
    const response = exchange.stream(status, header.lines());
    const stop = exchange.onAbort((reason) => call.end(reason));
    let first = true;
    try {
      if (form.open !== "") await response.write(form.open);
      for (; !next.done; next = await iterator.next()) {
        await response.write(form.piece(endpoint.response(next.value), first));
        first = false;
      }
      if (form.close !== "") await response.write(form.close);
      response.end();
      call.end();
    } catch (reason) {
      call.end(reason);
      const body = encodeFailure(failureFrom(reason), { rpc: endpoint.method, inBand: true }).body;
      const piece = form.failure(body, first);
      if (piece === undefined) response.cut();
      else await response.write(piece + form.close).then(response.end, () => undefined);
      // Whatever the implementation still holds, its finally blocks let go of it.
      await iterator.return?.().catch(() => undefined);
    } finally {
      stop();
    }
  }

  async function succeed(exchange: Exchange<Source>, endpoint: Endpoint, call: Call, payload: Payload): Promise<void> {
    const header = call.responseHeader;
    const status = call.lastValues.get(successStatus);
    if (options.trailersAsHeaders)
      for (const [name, value] of call.responseTrailer) header.append(`trailer-${name}`, value);
    let { content } = payload;
    if (options.compress !== false && byteLength(content) >= endpoint.rpc.options.compressMinBytes) {
      header.append("vary", "Accept-Encoding");
      if (acceptsGzip(exchange.headers.get("accept-encoding")) && !header.has("content-encoding")) {
        content = await gzip(content);
        header.set("content-encoding", "gzip");
      }
    }
    if (!header.has("content-type")) header.set("content-type", payload.contentType);
    send(exchange, endpoint, status, header, content, undefined);
  }

  function fail(
    exchange: Exchange<Source>,
    endpoint: Endpoint | undefined,
    call: Call | undefined,
    failure: Failure,
  ): void {
    const header = call?.responseHeader ?? new HeaderMap();
    const { error } = failure;
    if (!error.isWireError) mergeNonProtocolHeaders(header, error.metadata);
    const answer = encodeFailure(failure, { rpc: endpoint?.method, inBand: false });
    if (failure.kind === "method_not_allowed") header.set("allow", failure.allow.join(", "));
    for (const [name, value] of Object.entries(answer.headers ?? {})) header.set(name, value);
    header.delete("content-encoding");
    header.set("content-type", "application/json");
    send(exchange, endpoint, answer.status ?? failure.status, header, JSON.stringify(answer.body), failure);
  }

  function answerOptions(exchange: Exchange<Source>, allow: readonly string[]): void {
    const header = new HeaderMap();
    header.set("allow", allow.join(", "));
    send(exchange, undefined, 204, header, undefined, undefined);
  }

  function send(
    exchange: Exchange<Source>,
    endpoint: Endpoint | undefined,
    status: number,
    header: HeaderMap,
    content: string | Uint8Array | undefined,
    failure: Failure | undefined,
  ): void {
    options.onAnswer?.(header, {
      request: exchange.source,
      method: exchange.method,
      status,
      rpc: endpoint?.method,
      failure,
    });
    // RFC 9110 sections 15.3.5 and 15.4.5: these have no content, whatever the method.
    const bare = content === undefined || status === 204 || status === 304;
    if (bare) {
      header.delete("content-type");
      header.delete("content-length");
    } else header.set("content-length", String(byteLength(content)));
    exchange.send(status, header.lines(), bare || exchange.method === "HEAD" ? undefined : content);
  }

  function hook(
    { source: request, method }: Exchange<Source>,
    endpoint: Endpoint | undefined,
    status: number,
    header: HeaderMap,
    failure: Failure | undefined,
  ): void {
    options.onAnswer?.(header, { request, method, status, rpc: endpoint?.method, failure });
  }

  return { match: matcher.match, serve };
}

function notFound(found: Exclude<Match, { kind: "route" }>): Failure {
  switch (found.kind) {
    case "method_not_allowed":
      return failures.methodNotAllowed(found.allow);
    case "malformed":
      return failures.badRequest("path", undefined, found.reason);
    case "no_route":
      return failures.noRoute();
  }
}

async function readBody<Source>(exchange: Exchange<Source>, limit: number): Promise<Uint8Array> {
  const encoding = exchange.headers.get("content-encoding");
  const body = await exchange.read(limit);
  return encoding === null ? body : decompress(body, encoding, limit);
}

function byteLength(content: string | Uint8Array): number {
  return typeof content === "string" ? Buffer.byteLength(content) : content.byteLength;
}
