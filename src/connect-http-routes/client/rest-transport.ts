import type {
  DescMethod,
  DescMethodStreaming,
  DescMethodUnary,
  JsonValue,
  Message,
  Registry,
} from "@bufbuild/protobuf";
import { Code, ConnectError, createContextValues, type Interceptor, type Transport } from "@connectrpc/connect";
import { runStreamingCall, runUnaryCall } from "@connectrpc/connect/protocol";
import { isJsonObject } from "../codec/json-values.ts";
import type { Route, RouteTable } from "../routes/model.ts";
import { createResponseDecoder, type ResponseDecoder } from "./decode.ts";
import { encodeRequest, type FetchBody } from "./encode.ts";
import { eventsOf, piecesOf } from "./read-stream.ts";
import { type EncodedStream, encodeStream } from "./request-stream.ts";
import { type ErrorDecoder, errorOfResponse, errorOfStatus } from "./rest-error.ts";

export interface RestTransportOptions {
  /** The URL that the paths of routes are appended to, such as `https://api.example.com`. */
  readonly baseUrl: string;
  /** The function that sends requests, for example with credentials or in tests. Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch;
  readonly interceptors?: readonly Interceptor[];
  /** The types of error details and of `google.protobuf.Any`. */
  readonly registry?: Registry;
  /** Reads the errors of servers that do not send `google.rpc.Status` as JSON. */
  readonly errorDecoder?: ErrorDecoder;
  /** The timeout of unary calls that set none, in milliseconds. Default: none. */
  readonly defaultTimeoutMs?: number;
}

type AnyRequest = { readonly header: Headers; readonly signal: AbortSignal };

/**
 * Creates a Connect transport over the JSON routes of services, for `createClient`, with interceptors and call options. No redirect is
 * followed: it is an error of the call.
 *
 * @throws TypeError without `baseUrl`
 */
export function createRestTransport(tables: Iterable<RouteTable>, given: RestTransportOptions): Transport {
  const options = { ...given, baseUrl: baseOf(given) };
  const { baseUrl, registry } = options;
  const interceptors = [...(options.interceptors ?? [])];
  const routes = new Map<DescMethod, Route[]>();
  for (const { service, routes: all } of tables) {
    for (const method of service.methods) {
      routes.set(
        method,
        all.filter(({ rpc }) => rpc === method.localName),
      );
    }
  }
  return {
    unary(method, signal, timeoutMs, header, input, contextValues) {
      const timeout = timeoutMs ?? options.defaultTimeoutMs;
      return runUnaryCall({
        interceptors,
        ...(signal && { signal }),
        ...(timeout !== undefined && timeout > 0 && { timeoutMs: timeout }),
        req: {
          stream: false,
          ...requestOf(method as DescMethodUnary, baseUrl, header, timeout, contextValues),
          message: input,
        },
        async next(request) {
          const encoded = encodeRequest(method, routes.get(method) ?? [], request.message, registry);
          const body = encoded.body as FetchBody | undefined;
          const decoder = createResponseDecoder(method, encoded.route, registry);
          const response = await send(options, request, { first: encoded, body }, decoder, "application/json");
          const message = await readUnary(decoder, response);
          return { ...ofResponse(method as DescMethodUnary, response), stream: false, message: message as never };
        },
      });
    },
    stream(method, signal, timeoutMs, header, input, contextValues) {
      return runStreamingCall({
        interceptors,
        ...(signal && { signal }),
        ...(timeoutMs !== undefined && timeoutMs > 0 && { timeoutMs }),
        req: {
          stream: true,
          ...requestOf(method as DescMethodStreaming, baseUrl, header, timeoutMs, contextValues),
          message: input,
        },
        async next(request) {
          const all = routes.get(method) ?? [];
          const encoded = await encodeStream(method, all, request.message as AsyncIterable<Message>, registry);
          const { first } = encoded;
          const one = method.methodKind === "client_streaming";
          const decoder = createResponseDecoder(method, first.route, registry);
          const response = await send(
            options,
            request,
            encoded,
            decoder,
            one ? "application/json" : "text/event-stream",
          );
          const message = one ? once(readUnary(decoder, response)) : readStream(options, decoder, response);
          return { ...ofResponse(method as DescMethodStreaming, response), stream: true, message: message as never };
        },
      });
    },
  } as Transport;
}

function baseOf(options: RestTransportOptions): string {
  const { baseUrl } = options ?? {};
  if (typeof baseUrl !== "string") {
    const meant = Object.keys(options ?? {}).find(
      (name) => /ur[il]|base|origin|host|endpoint/i.test(name) && name !== "baseUrl",
    );
    throw new TypeError(`baseUrl must be a text, and is ${baseUrl}${meant ? `: ${meant} is not an option` : ""}`);
  }
  return baseUrl.replace(/\/+$/, "");
}

/** @throws ConnectError for every response that is not a success */
async function send(
  options: RestTransportOptions,
  request: AnyRequest,
  { first: encoded, body, failure }: EncodedStream,
  { raw }: ResponseDecoder,
  accept: string,
) {
  const { header: headers, signal } = request;
  headers.set("accept", raw ? "*/*" : accept);
  if (encoded.contentType !== undefined) headers.set("content-type", encoded.contentType);
  const streams = body instanceof ReadableStream ? { duplex: "half" as const } : {};
  // `fetch` would send the headers of the request, and so its credentials, to the target of a redirect, even at another origin.
  const redirect = "manual" as const;
  const init = { method: encoded.method, headers, redirect, signal, ...(body !== undefined && { body }), ...streams };
  let response: Response;
  try {
    response = await (options.fetch ?? globalThis.fetch)(options.baseUrl + encoded.target, init);
  } catch (error) {
    if (signal.aborted) throw error;
    const cause = failure?.();
    if (cause !== undefined) throw cause.reason;
    throw new ConnectError("the request failed", Code.Unavailable, undefined, undefined, error);
  }
  if (response.ok) return response;
  throw errorOfResponse(await response.text(), response, options.errorDecoder, options.registry);
}

async function readUnary(decoder: ResponseDecoder, response: Response): Promise<Message> {
  if (decoder.raw) {
    const data = new Uint8Array(await response.arrayBuffer());
    return decoder.fromBytes(data, response.headers.get("content-type") ?? "");
  }
  const text = await response.text();
  try {
    return decoder.fromJson(text === "" ? undefined : (JSON.parse(text) as JsonValue));
  } catch (error) {
    if (error instanceof ConnectError) throw error;
    throw new ConnectError("the response is not JSON", Code.Internal, undefined, undefined, error);
  }
}

async function* readStream(
  options: RestTransportOptions,
  decoder: ResponseDecoder,
  response: Response,
): AsyncGenerator<Message> {
  if (decoder.raw) {
    const contentType = response.headers.get("content-type") ?? "";
    for await (const piece of piecesOf(response.body)) yield decoder.fromBytes(piece, contentType);
    return;
  }
  for await (const { failed, json } of eventsOf(response.body)) {
    if (!failed) yield decoder.fromJson(json);
    else throw inBandError(options, json, response.status);
  }
}

function inBandError({ errorDecoder, registry }: RestTransportOptions, json: JsonValue, status: number): ConnectError {
  const inner = isJsonObject(json) ? json.error : undefined;
  const error = errorDecoder?.(json, status) ?? errorOfStatus(inner ?? json, registry);
  return error ?? new ConnectError("the stream failed", Code.Unknown);
}

function requestOf<Method extends DescMethod>(
  method: Method,
  base: string,
  init: ConstructorParameters<typeof Headers>[0],
  timeoutMs: number | undefined,
  contextValues = createContextValues(),
) {
  const header = new Headers(init);
  if (timeoutMs !== undefined && timeoutMs > 0) header.set("connect-timeout-ms", String(Math.ceil(timeoutMs)));
  const url = `${base}/${method.parent.typeName}/${method.name}`;
  return { service: method.parent, method, requestMethod: "POST", url, header, contextValues };
}

function ofResponse<Method extends DescMethod>(method: Method, { headers }: Response) {
  const trailer = new Headers();
  headers.forEach((value, name) => {
    if (name.startsWith("trailer-")) trailer.append(name.slice(8), value);
  });
  return { service: method.parent, method, header: headers, trailer };
}

async function* once<T>(value: Promise<T>): AsyncGenerator<T> {
  yield await value;
}
