/** Spans of requests and of the calls that they cause, by OTLP. The module is loaded only if they are asked for. */
import type { Transport } from "@connectrpc/connect";
import { trace } from "@opentelemetry/api";
import type { Handler } from "../platform/listener/handler.ts";
import { traceCalls } from "../platform/telemetry/calls.ts";
import { traceRequests } from "../platform/telemetry/requests.ts";
import { createTraceBucket } from "../platform/telemetry/sampler.ts";
import { createResource, currentTraceId, reportFaults, shutDown, startTraces } from "../platform/telemetry/traces.ts";
import type { GatewayArguments } from "./arguments.ts";
import type { WriteLog } from "./request-log.ts";

export interface Tracing {
  /** Wraps the handler with spans of requests, which continue the traces that clients send. */
  traceRequests(handler: Handler): Handler;
  /** Wraps the transport with spans of calls inside recorded requests. The upstream receives their context as its parent. */
  traceCalls(transport: Transport): Transport;
  /** Returns the id of the trace of the current request. */
  traceId(): string | undefined;
  /** Exports the waiting spans, within a bounded time. */
  shutdown(): Promise<void>;
}

type TracingArguments = Pick<GatewayArguments, "protocol" | "upstreams"> & {
  readonly otlp: NonNullable<GatewayArguments["otlp"]>;
};

export async function startTracing({ otlp, protocol, upstreams }: TracingArguments, write: WriteLog): Promise<Tracing> {
  reportFaults((fault) => write({ event: "tracing failed", reason: fault }));
  const limit = { count: otlp.tracesPerSecond, windowMs: 1_000 };
  const limits = { bucket: createTraceBucket(limit), onLimited: () => {} };
  const config = { protocol: "http/protobuf", sampler: "parentbased_traceidratio", samplerRatio: otlp.ratio } as const;
  const traces = { ...config, url: otlp.url, headersFile: otlp.headersFile };
  const provider = await startTraces(traces, limits, createResource("connect-http-gateway"));
  const tracer = trace.getTracer("connect-http-gateway");
  return {
    traceRequests: (handler) => traceRequests(tracer, handler, limits),
    // A pool chooses the server of a call, so it is not known here if there are several.
    traceCalls: (transport) => traceCalls(transport, protocol, upstreams.length === 1 ? upstreams[0] : ""),
    traceId: currentTraceId,
    shutdown: () => shutDown(provider),
  };
}
