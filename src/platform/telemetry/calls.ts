/** Spans of the calls of a server, and of those that it makes, inside the spans of HTTP requests. */
import { createContextValues, type Interceptor, type Transport } from "@connectrpc/connect";
import { runStreamingCall, runUnaryCall } from "@connectrpc/connect/protocol";
import { context, trace } from "@opentelemetry/api";
import { tracingClientInterceptor, tracingServerInterceptor } from "../../connect-opentelemetry/index.ts";

/** Creates the interceptor that must be a server's first. */
export const tracedHandlers = (): Interceptor => tracingServerInterceptor({ onlyInside: true });

/**
 * Adds spans to a transport that takes no interceptors: for calls inside a span that is recorded. The server gets them as parents.
 * @param baseUrl the URL of the server; empty if it is not known
 */
export function traceCalls(
  transport: Transport,
  protocol: "grpc" | "grpc-web" | "connect",
  baseUrl: string,
): Transport {
  const interceptors = [tracingClientInterceptor({ onlyInside: true })];
  // The interceptor tells the protocols apart by the content type, which the transport itself sets later.
  const contentType = protocol === "connect" ? "application/proto" : `application/${protocol}`;
  const common = (header: Parameters<Transport["unary"]>[3], contextValues = createContextValues()) => {
    const own = new Headers(header);
    own.set("content-type", contentType);
    return { requestMethod: "POST", url: baseUrl, header: own, contextValues } as const;
  };
  const metadata = (header: Headers) => {
    const own = new Headers(header);
    own.delete("content-type");
    return own;
  };
  const isInside = () => trace.getSpan(context.active()) !== undefined;
  return {
    unary(method, signal, timeoutMs, header, message, values) {
      if (!isInside()) return transport.unary(method, signal, timeoutMs, header, message, values);
      const req = { stream: false, service: method.parent, method, message, ...common(header, values) } as const;
      return runUnaryCall({
        req,
        interceptors,
        ...(signal && { signal }),
        next: (call) => transport.unary(method, call.signal, timeoutMs, metadata(call.header), call.message, values),
      });
    },
    stream(method, signal, timeoutMs, header, message, values) {
      if (!isInside()) return transport.stream(method, signal, timeoutMs, header, message, values);
      const req = { stream: true, service: method.parent, method, message, ...common(header, values) } as const;
      return runStreamingCall({
        req,
        interceptors,
        ...(signal && { signal }),
        next: (call) => transport.stream(method, call.signal, timeoutMs, metadata(call.header), call.message, values),
      });
    },
  };
}
