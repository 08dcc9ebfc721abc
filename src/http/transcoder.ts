import { Answers } from "./answers.ts";
import { Call } from "./call.ts";
import { decompress } from "./compression.ts";
import { readTimeout } from "./deadline.ts";
import { createEndpoints, type Endpoint } from "./endpoints.ts";
import type { Exchange } from "./exchange.ts";
import { type Failure, FailureError, failures } from "./failure.ts";
import { callServerStreaming, callUnary } from "./invoke.ts";
import { createMatcher, type Match } from "./matcher.ts";
import { isJson } from "./negotiation.ts";
import type { TranscoderOptions } from "./options.ts";
import { recordRoutes } from "./recorder.ts";
import { answerWithStream } from "./stream-answer.ts";

/** Serves exchanges: the way from a request to a message, through an implementation, and back. */
export interface Transcoder<Source> {
  /** Finds the route of a request. */
  match(method: string, rawPath: string): Match;
  /** Answers a request. Never rejects. */
  serve(exchange: Exchange<Source>, found: Match, query: string): Promise<void>;
}

const noBytes = new Uint8Array();

/** @throws Error if a table names a service that is not registered, or if two routes match the same requests */
export function createTranscoder<Source>(options: TranscoderOptions<Source>): Transcoder<Source> {
  const tables = [...options.tables];
  const endpoints = createEndpoints(recordRoutes(options.routes, options), {
    tables,
    refuseUnknownQuery: options.refuseUnknownQuery ?? false,
    inferUpdateMask: options.inferUpdateMask ?? true,
  });
  const served = tables.map((table) => ({ ...table, routes: table.routes.filter((route) => endpoints.has(route)) }));
  const matcher = createMatcher(served, options.multiSegmentDecoding);
  const answers = new Answers(options);

  async function serve(exchange: Exchange<Source>, found: Match, query: string): Promise<void> {
    let endpoint: Endpoint | undefined;
    let call: Call | undefined;
    try {
      endpoint = found.kind === "route" ? endpoints.get(found.route) : undefined;
      if (found.kind !== "route" || endpoint === undefined) {
        if (found.kind !== "method_not_allowed" || exchange.method !== "OPTIONS")
          throw new FailureError(notFound(found));
        return answers.allow(exchange, found.allow);
      }
      const { rpc, method, request } = endpoint;
      call = new Call(method, exchange, {
        timeoutMs: readTimeout(exchange.headers, rpc.options.maxTimeoutMs),
        shutdownSignal: rpc.options.shutdownSignal,
        contextValues: options.contextValues?.(exchange.source),
      });
      if (rpc.options.requestGate !== undefined) await rpc.options.requestGate(call);
      // An empty header is one that says nothing.
      const contentType = exchange.headers.get("content-type") || null;
      if (request.body === "json" && contentType !== null && !isJson(contentType)) {
        throw new FailureError(failures.unsupportedMediaType(`the content type ${contentType} is not JSON`));
      }
      const readable = request.body !== "none" && exchange.hasBody;
      const body = readable ? await readBody(exchange, rpc.options.readMaxBytes) : noBytes;
      const input = request.decode(found.bindings, query, body, contentType);
      if (rpc.spec.kind === "server_streaming") {
        const messages = await callServerStreaming(rpc, call, input);
        return await answerWithStream(answers, exchange, endpoint, call, messages);
      }
      const output = await callUnary(rpc, call, input);
      await answers.succeed(exchange, endpoint, call, endpoint.response(output));
      call.end();
    } catch (reason) {
      call?.end(reason);
      try {
        answers.fail(exchange, endpoint, call, reason);
      } catch {
        // An encoder or a hook that throws must not take the process down.
        exchange.giveUp();
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

async function readBody<Source>(exchange: Exchange<Source>, limit: number): Promise<Uint8Array> {
  const encoding = exchange.headers.get("content-encoding");
  const body = await exchange.read(limit);
  return encoding === null ? body : decompress(body, encoding, limit);
}
