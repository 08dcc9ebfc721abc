/** OpenTelemetry tracing for servers and clients on connect-es. */
import { Code, ConnectError, type Interceptor, type StreamRequest, type UnaryRequest } from "@connectrpc/connect";
import { codeToString } from "@connectrpc/connect/protocol-connect";
import {
  type Context,
  context,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  type TracerProvider,
  trace,
} from "@opentelemetry/api";
import { observed } from "./observed.ts";

export type TracingOptions = {
  /**
   * Whether a call gets a span only inside another span, such as that of the HTTP request. Outside of one, the headers of the call stay as
   * they are. Default: false.
   */
  readonly onlyInside?: boolean;
  /** The provider of the tracer. Default: the global one at the time of the first call. */
  readonly tracerProvider?: TracerProvider;
};

type Request = UnaryRequest | StreamRequest;

const NAME = "connect-opentelemetry";

/** The codes that mean a fault of the server, not of its caller. Only these mark a server's span as an error. */
const SERVER_FAULTS: ReadonlySet<Code> = new Set([
  Code.Unknown,
  Code.DeadlineExceeded,
  Code.Unimplemented,
  Code.Internal,
  Code.Unavailable,
  Code.DataLoss,
]);

/**
 * Makes a span for every call of a server, until its response, streams included, is complete. Its parent is the current span, such as that
 * of the HTTP request, or else the span that the caller sent (by the global propagator). Inside a span that is not recorded, none is made.
 * This should be the first interceptor, so that it sees errors as callers get them.
 */
export function tracingServerInterceptor(options: TracingOptions = {}): Interceptor {
  const tracer = createTracer(options);
  return (next) => (request) => {
    const active = context.active();
    const current = trace.getSpan(active);
    if (current === undefined ? options.onlyInside === true : isDropped(current)) return next(request);
    const parent = current === undefined ? propagation.extract(active, request.header, HEADER_GETTER) : active;
    const span = tracer().startSpan(
      nameOf(request),
      { kind: SpanKind.SERVER, attributes: attributesOf(request) },
      parent,
    );
    const fail = (error: ConnectError) => recordFailure(span, request, error, SERVER_FAULTS.has(error.code));
    return call(next, request, trace.setSpan(parent, span), span, fail);
  };
}

/**
 * Makes a span for every call of a client, until its response, streams included, is complete. The call carries the span's context (by the
 * global propagator). Inside a span that is not recorded, none is made, and the call carries that span's context.
 */
export function tracingClientInterceptor(options: TracingOptions = {}): Interceptor {
  const tracer = createTracer(options);
  return (next) => (request) => {
    const active = context.active();
    const current = trace.getSpan(active);
    if (current === undefined && options.onlyInside === true) return next(request);
    if (current !== undefined && isDropped(current)) {
      propagation.inject(active, request.header, HEADER_SETTER);
      return next(request);
    }
    const attributes = { ...attributesOf(request), ...serverOf(request.url) };
    const span = tracer().startSpan(nameOf(request), { kind: SpanKind.CLIENT, attributes }, active);
    const own = trace.setSpan(active, span);
    propagation.inject(own, request.header, HEADER_SETTER);
    return call(next, request, own, span, (error) => recordFailure(span, request, error, true));
  };
}

/** Returns whether a span is not recorded. A span of another process, extracted by a middleware, is recorded if it is sampled. */
function isDropped(span: Span): boolean {
  return !span.isRecording() && (span.spanContext().traceFlags & TraceFlags.SAMPLED) === 0;
}

function createTracer({ tracerProvider }: TracingOptions): () => Tracer {
  let tracer: Tracer | undefined;
  return () => {
    tracer ??= (tracerProvider ?? trace.getTracerProvider()).getTracer(NAME);
    return tracer;
  };
}

/** Makes the call in the context of its span, and ends the span when the call ends. */
async function call(
  next: Parameters<Interceptor>[0],
  request: Request,
  own: Context,
  span: Span,
  fail: (error: ConnectError) => void,
): Promise<Awaited<ReturnType<Parameters<Interceptor>[0]>>> {
  try {
    const response = await context.with(own, next, undefined, request);
    if (!response.stream) {
      recordSuccess(span, request);
      span.end();
      return response;
    }
    const onEnd = (error: ConnectError | undefined) => {
      if (error === undefined) recordSuccess(span, request);
      else fail(error);
      span.end();
    };
    return { ...response, message: observed(response.message, request.signal, own, onEnd) };
  } catch (error) {
    fail(ConnectError.from(error, Code.Internal));
    span.end();
    throw error;
  }
}

const nameOf = ({ method }: Request) => `${method.parent.typeName}/${method.name}`;

const isGrpc = (request: Request) => request.header.get("content-type")?.startsWith("application/grpc") === true;

/** Returns attributes by the semantic conventions for RPC. Headers and messages are left out, because they may contain secrets. */
function attributesOf(request: Request): Record<string, string> {
  return {
    "rpc.system.name": isGrpc(request) ? "grpc" : "connectrpc",
    "rpc.method": nameOf(request),
  };
}

function serverOf(url: string): Record<string, string | number> {
  if (!URL.canParse(url)) return {};
  const { hostname, port, protocol } = new URL(url);
  return { "server.address": hostname, "server.port": Number(port) || (protocol === "https:" ? 443 : 80) };
}

const STATUS_CODE = "rpc.response.status_code";

/** gRPC has a status for success, too. Connect has none: the conventions want the attribute for its failures alone. */
function recordSuccess(span: Span, request: Request): void {
  if (isGrpc(request)) span.setAttribute(STATUS_CODE, "OK");
}

/** Returns a code as the protocol of the call names it, which is what the semantic conventions want. */
function statusOf(code: Code, request: Request): string {
  const name = codeToString(code);
  if (!isGrpc(request)) return name;
  return code === Code.Canceled ? "CANCELLED" : name.toUpperCase();
}

/** Records a failure by its code alone, because messages of errors may contain data that a caller sent. */
function recordFailure(span: Span, request: Request, error: ConnectError, isFault: boolean): void {
  const code = statusOf(error.code, request);
  span.setAttribute(STATUS_CODE, code);
  if (!isFault) return;
  span.setAttribute("error.type", code);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

const HEADER_GETTER = {
  get: (header: Headers, name: string) => header.get(name) ?? undefined,
  keys: (header: Headers) => [...header.keys()],
};

const HEADER_SETTER = { set: (header: Headers, name: string, value: string) => header.set(name, value) };
