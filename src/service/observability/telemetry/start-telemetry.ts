/** Starts OpenTelemetry. This module is loaded only if the configuration asks for it. */
import type { Interceptor } from "@connectrpc/connect";
import { trace } from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import type { Handler } from "../../../platform/listener/handler.ts";
import { tracedHandlers } from "../../../platform/telemetry/calls.ts";
import { traceRequests } from "../../../platform/telemetry/requests.ts";
import { createTraceBucket } from "../../../platform/telemetry/sampler.ts";
import {
  createResource,
  currentTraceId,
  exportHeaders,
  reportFaults,
  shutDown,
  startTraces,
} from "../../../platform/telemetry/traces.ts";
import type { TelemetryConfig } from "../../config/observability.ts";
import type { SessionStore } from "../../session/ports.ts";
import type { Logger } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import { createMetricProducer } from "./metric-producer.ts";
import { traceStore } from "./spans.ts";

/** OpenTelemetry, for the rest of the service, which does not load its libraries. */
export type Telemetry = {
  /** The interceptors that make spans of calls. They must come first. */
  readonly interceptors: readonly Interceptor[];
  /** Wraps a handler with spans of HTTP requests. They continue the traces that callers send. */
  traceRequests(handler: Handler): Handler;
  /** Wraps the store with spans of commands, for calls that are recorded. */
  traceStore(store: SessionStore, kind: "embedded" | "redis"): SessionStore;
  traceId(): string | undefined;
  /** Exports the waiting spans, within a bounded time. */
  shutdown(): Promise<void>;
};

type TelemetryDeps = {
  readonly config: TelemetryConfig;
  readonly metrics: Pick<Metrics, "values" | "traceLimited">;
  readonly log: Logger;
};

export async function startTelemetry({ config, metrics, log }: TelemetryDeps): Promise<Telemetry> {
  reportFaults((message) => log.warn({ event: "telemetry_failed", fault: message }, "telemetry_failed"));
  const resource = createResource(config.serviceName);
  const limits = config.traceLimit && { bucket: createTraceBucket(config.traceLimit), onLimited: metrics.traceLimited };
  const tracerProvider = config.traces ? await startTraces(config, limits, resource) : undefined;
  const meterProvider = config.metrics ? await createMeterProvider(config, metrics, resource) : undefined;
  const tracer = trace.getTracer("session-service");
  return {
    interceptors: tracerProvider === undefined ? [] : [tracedHandlers()],
    traceRequests: (handler) => (tracerProvider === undefined ? handler : traceRequests(tracer, handler, limits)),
    traceStore: (store, kind) => (tracerProvider === undefined ? store : traceStore(tracer, store, kind)),
    traceId: currentTraceId,
    shutdown: () => shutDown(tracerProvider, meterProvider),
  };
}

async function createMeterProvider(
  { protocol, metricIntervalMs, headersFile }: TelemetryConfig,
  metrics: TelemetryDeps["metrics"],
  resource: Resource,
): Promise<MeterProvider> {
  const { OTLPMetricExporter } =
    protocol === "http/json"
      ? await import("@opentelemetry/exporter-metrics-otlp-http")
      : await import("@opentelemetry/exporter-metrics-otlp-proto");
  const reader = new PeriodicExportingMetricReader({
    exporter: new OTLPMetricExporter(exportHeaders(headersFile)),
    exportIntervalMillis: metricIntervalMs,
    exportTimeoutMillis: Math.min(metricIntervalMs, 30_000),
    metricProducers: [createMetricProducer(metrics.values, resource)],
  });
  return new MeterProvider({ resource, readers: [reader] });
}
