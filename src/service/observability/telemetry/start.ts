/** Starts OpenTelemetry. This module is loaded only if the configuration asks for it. */
import { trace } from "@opentelemetry/api";
import type { Resource } from "@opentelemetry/resources";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
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
import type { Logger } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import { createMetricProducer } from "./metric-producer.ts";
import { traceStore } from "./spans.ts";
import type { Telemetry } from "./telemetry.ts";

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
