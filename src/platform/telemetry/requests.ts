/** Spans of HTTP requests. Nothing that callers choose is an attribute: paths, headers and keys may hold secrets. */
import {
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from "@opentelemetry/api";
import type { Handler, HttpRequest, HttpResponse } from "../listener/handler.ts";
import type { TraceLimits } from "./sampler.ts";

/** The methods that name a span. The span of any other method is named `HTTP`. */
const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);
const OPTIONS = { kind: SpanKind.SERVER } as const;

/** Creates a span for each recorded request. Most requests of a busy instance are not recorded: they skip the tracer, to save some µs. */
export function traceRequests(tracer: Tracer, handler: Handler, limits: TraceLimits | undefined): Handler {
  return (request, response) => {
    if (limits?.bucket.isEmpty() === true) {
      limits.onLimited();
      return handler(request, response);
    }
    const { headers } = request;
    const caller = headers.traceparent === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, headers);
    const method = METHODS.has(request.method ?? "") ? (request.method as string) : "HTTP";
    const span = tracer.startSpan(method, OPTIONS, caller);
    if (!span.isRecording()) return handler(request, response);
    record(span, request, response);
    context.with(trace.setSpan(caller, span), handler, undefined, request, response);
  };
}

function record(span: Span, request: HttpRequest, response: HttpResponse): void {
  const { socket } = request;
  span.setAttributes({
    "http.request.method": METHODS.has(request.method ?? "") ? (request.method as string) : "_OTHER",
    "url.scheme": "encrypted" in socket && socket.encrypted === true ? "https" : "http",
    "network.protocol.version": request.httpVersion === "2.0" ? "2" : request.httpVersion,
  });
  response.once("close", () => {
    const { statusCode } = response;
    // If the client disconnected before the response began, there is no status.
    if (response.headersSent) span.setAttribute("http.response.status_code", statusCode);
    if (response.headersSent && statusCode >= 500) {
      span.setAttribute("error.type", String(statusCode));
      span.setStatus({ code: SpanStatusCode.ERROR });
    }
    span.end();
  });
}
