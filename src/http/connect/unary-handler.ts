/**
 * Serves unary calls of the Connect protocol by the way of the routes. connect-node creates streams, real `Headers` and two
 * `AbortController` for each call, which cost more than the call itself. Everything that is no such call goes to the fallback.
 */
import type { DescMessage, DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, type ContextValues, type HandlerContext } from "@connectrpc/connect";
import {
  createMethodSerializationLookup,
  createMethodUrl,
  type MethodSerializationLookup,
  mergeNonProtocolHeaders,
  type UniversalHandlerOptions,
} from "@connectrpc/connect/protocol";
import { codeToHttpStatus, errorToJsonBytes, parseTimeout } from "@connectrpc/connect/protocol-connect";
import { Call } from "../call/call.ts";
import type { Exchange } from "../call/exchange.ts";
import type { HeaderMap } from "../call/header-map.ts";
import { callUnary } from "../call/invoke.ts";
import { type RecordedRpc, recordRoutes } from "../call/recorder.ts";
import {
  formOf,
  readMessage,
  requestCompression,
  requireVersion,
  responseCompression,
  type UnaryForm,
} from "./unary-request.ts";

/** Options of the handler of unary calls. Those of connect-es have the same meaning here; `acceptCompression` is empty by default. */
export interface UnaryOptions<Source> extends Partial<UniversalHandlerOptions> {
  /** The function that registers the services, the same as for a Connect adapter. */
  readonly routes: (router: ConnectRouter) => void;
  readonly contextValues?: (request: Source) => ContextValues;
  /** Returns the error that the client receives instead of another one; undefined to keep it. */
  readonly translateError?: (error: ConnectError, context: HandlerContext) => ConnectError | undefined;
  /** Called immediately before the headers of any response are sent; may change them. */
  readonly onResponse?: (headers: Headers, request: Source) => void;
}

/** Serves the unary RPCs of the registered services. */
interface UnaryHandler<Source> {
  /** Returns the unary RPC with a path. */
  find(path: string): Procedure | undefined;
  /** Serves a call. Returns false, and leaves the request alone, if it is no call by the Connect protocol. */
  serve(procedure: Procedure, exchange: Exchange<Source>): boolean;
}

/** A unary RPC and everything needed to serve it. */
interface Procedure {
  readonly method: DescMethod;
  readonly rpc: RecordedRpc;
  readonly serialization: MethodSerializationLookup<DescMessage, DescMessage>;
}

/** What is sent, and the status with which. */
interface Outcome {
  readonly status: number;
  readonly content: Uint8Array;
}

export function createUnary<Source>(options: UnaryOptions<Source>): UnaryHandler<Source> {
  const procedures = new Map<string, Procedure>();
  for (const [method, rpc] of recordRoutes(options.routes, options)) {
    if (rpc.spec.kind !== "unary") continue;
    const { binaryOptions, jsonOptions } = rpc.options;
    const serialization = createMethodSerializationLookup(method, binaryOptions, jsonOptions, rpc.options);
    procedures.set(createMethodUrl("/", method), { method, rpc, serialization });
  }
  return {
    find: (path) => procedures.get(path),
    serve(procedure, exchange) {
      const form = formOf(exchange, procedure.method);
      if (form === undefined) return false;
      void serve(options, procedure, exchange, form);
      return true;
    },
  };
}

/** Never rejects. */
async function serve<Source>(
  options: UnaryOptions<Source>,
  procedure: Procedure,
  exchange: Exchange<Source>,
  form: UnaryForm,
): Promise<void> {
  const { method, rpc } = procedure;
  try {
    const timeout = parseTimeout(exchange.headers.get("connect-timeout-ms"), rpc.options.maxTimeoutMs);
    const call = new Call(method, exchange, {
      protocolName: "connect",
      timeoutMs: timeout.timeoutMs,
      shutdownSignal: rpc.options.shutdownSignal,
      contextValues: options.contextValues?.(exchange.source),
    });
    const { responseHeader: header } = call;
    header.set("content-type", form.binary ? "application/proto" : "application/json");
    const { status, content } = await outcomeOf(options, procedure, exchange, form, call, timeout.error);
    const sent = await compress(rpc, exchange, form, header, content);
    const trailers = call.responseTrailer.lines();
    for (let i = 0; i < trailers.length; i += 2) header.append(`trailer-${trailers[i]}`, trailers[i + 1] ?? "");
    header.set("content-length", String(sent.byteLength));
    options.onResponse?.(header, exchange.source);
    exchange.send(status, header.lines(), sent);
  } catch {
    // A hook or a compression that throws must not end the process.
    exchange.sendServerError();
  }
}

async function outcomeOf<Source>(
  options: UnaryOptions<Source>,
  { rpc, serialization }: Procedure,
  exchange: Exchange<Source>,
  form: UnaryForm,
  call: Call,
  timeoutError: ConnectError | undefined,
): Promise<Outcome> {
  try {
    // Node calls this as soon as it has parsed a head. One tick later it has parsed what came together with the head: a small body.
    await undefined;
    // The gate comes before the body: the message of a refused request is never read, decompressed or parsed.
    const gated = rpc.options.requestGate?.(call);
    if (gated !== undefined) await gated;
    if (rpc.options.requireConnectProtocolHeader) requireVersion(exchange.headers, form);
    const compression = requestCompression(rpc.options.acceptCompression, exchange.headers, form);
    if (timeoutError !== undefined) throw timeoutError;
    const bytes = await readMessage(exchange, form, compression, rpc.options.readMaxBytes);
    const output = await callUnary(rpc, call, serialization.getI(form.binary).parse(bytes));
    const content = serialization.getO(form.binary).serialize(output);
    call.end();
    return { status: 200, content };
  } catch (reason) {
    call.end(reason);
    return fail(options, rpc, call, reason);
  }
}

function fail<Source>(
  { translateError }: UnaryOptions<Source>,
  { options: { jsonOptions } }: RecordedRpc,
  call: Call,
  reason: unknown,
): Outcome {
  const { responseHeader: header } = call;
  const error =
    reason instanceof ConnectError
      ? reason
      : new ConnectError("internal error", Code.Internal, undefined, undefined, reason);
  header.set("content-type", "application/json");
  // The metadata of an error that another server has sent is not passed on, as in connect-es.
  if (!error.isWireError) mergeNonProtocolHeaders(header, error.metadata);
  const translated = translateError?.(error, call);
  if (translated !== undefined) for (const [name, value] of translated.metadata) header.set(name, value);
  const sent = translated ?? error;
  // The options belong to the messages of the service, and a translated error has messages of its own.
  const content = errorToJsonBytes(sent, translated === undefined ? jsonOptions : undefined);
  return { status: codeToHttpStatus(sent.code), content };
}

async function compress(
  { options: { acceptCompression, compressMinBytes } }: RecordedRpc,
  { headers }: Exchange<unknown>,
  form: UnaryForm,
  header: HeaderMap,
  content: Uint8Array,
): Promise<Uint8Array> {
  if (content.byteLength < compressMinBytes) return content;
  const compression = responseCompression(acceptCompression, headers, form);
  if (compression === null) return content;
  header.set("content-encoding", compression.name);
  return compression.compress(content);
}
