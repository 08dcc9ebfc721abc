/** Starts OpenTelemetry. This module is loaded only if the configuration asks for it. */
import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { context, DiagLogLevel, diag, propagation, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { parseKeyPairsIntoRecord, setGlobalErrorHandler, W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from "@opentelemetry/resources";
import { MeterProvider, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { tracingServerInterceptor } from "../../../connect-opentelemetry/index.ts";
import type { TelemetryConfig } from "../../config/observability.ts";
import type { Logger } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import { createMetricProducer } from "./metric-producer.ts";
import { createSampler, createTraceBucket, limitedSampler, type TraceLimits } from "./sampler.ts";
import { traceRequests, traceStore } from "./spans.ts";
import type { Telemetry } from "./telemetry.ts";

type TelemetryDeps = {
  readonly config: TelemetryConfig;
  readonly metrics: Pick<Metrics, "values" | "traceLimited">;
  readonly log: Logger;
};

/** How long the process waits for a collector at its end, in ms. */
const SHUTDOWN_TIMEOUT_MS = 2_000;

export async function startTelemetry({ config, metrics, log }: TelemetryDeps): Promise<Telemetry> {
  const report = (message: string) => log.warn({ event: "telemetry_failed", fault: message }, "telemetry_failed");
  const silent = () => {};
  const diagnostics = { error: report, warn: report, info: silent, debug: silent, verbose: silent };
  diag.setLogger(diagnostics, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  // Only the message of an exception is reported. By default OpenTelemetry would report its stack as well.
  setGlobalErrorHandler((error) =>
    report(typeof error === "string" ? error : error.message || `${error.code ?? error.name}`),
  );
  const resource = resourceOf(config);
  const limits = config.traceLimit && { bucket: createTraceBucket(config.traceLimit), onLimited: metrics.traceLimited };
  const tracerProvider = config.traces ? await createTracerProvider(config, limits, resource) : undefined;
  const meterProvider = config.metrics ? await createMeterProvider(config, metrics, resource) : undefined;
  const tracer = trace.getTracer("session-service");
  return {
    interceptors: tracerProvider === undefined ? [] : [tracingServerInterceptor({ onlyInside: true })],
    traceRequests: (handler) => (tracerProvider === undefined ? handler : traceRequests(tracer, handler, limits)),
    traceStore: (store, kind) => (tracerProvider === undefined ? store : traceStore(tracer, store, kind)),
    traceId: () => trace.getSpanContext(context.active())?.traceId,
    async shutdown() {
      const ended = Promise.allSettled([tracerProvider?.shutdown(), meterProvider?.shutdown()]);
      await Promise.race([ended, sleep(SHUTDOWN_TIMEOUT_MS, undefined, { ref: false })]);
    },
  };
}

/** Returns the attributes of this process. Those in OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME take precedence over the others. */
function resourceOf({ serviceName }: TelemetryConfig): Resource {
  const own = resourceFromAttributes({ "service.name": serviceName, "service.instance.id": randomUUID() });
  return defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }));
}

async function createTracerProvider(
  { protocol, sampler, samplerRatio, headersFile }: TelemetryConfig,
  limits: TraceLimits | undefined,
  resource: Resource,
): Promise<BasicTracerProvider> {
  const { OTLPTraceExporter } =
    protocol === "http/json"
      ? await import("@opentelemetry/exporter-trace-otlp-http")
      : await import("@opentelemetry/exporter-trace-otlp-proto");
  const chosen = createSampler(sampler, samplerRatio);
  const provider = new BasicTracerProvider({
    resource,
    sampler: limits === undefined ? chosen : limitedSampler(chosen, limits.bucket),
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter(headersOf(headersFile)))],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  return provider;
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
    exporter: new OTLPMetricExporter(headersOf(headersFile)),
    exportIntervalMillis: metricIntervalMs,
    exportTimeoutMillis: Math.min(metricIntervalMs, 30_000),
    metricProducers: [createMetricProducer(metrics.values, resource)],
  });
  return new MeterProvider({ resource, readers: [reader] });
}

/** Returns the options of an exporter that reads its headers for each export, so that a replaced credential is used at once. */
const headersOf = (path: string | undefined) =>
  path === undefined ? {} : { headers: async () => parseKeyPairsIntoRecord((await readFile(path, "utf8")).trim()) };
