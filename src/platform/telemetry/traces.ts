/** Sets OpenTelemetry up to export traces by OTLP over HTTP. Programs load this module only if they are asked to. */
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
import { BasicTracerProvider, BatchSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { createSampler, limitedSampler, type TraceLimits } from "./sampler.ts";

interface TracesConfig {
  readonly protocol: "http/protobuf" | "http/json";
  /** The URL of the collector for spans. Default: what OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT says. */
  readonly url?: string;
  readonly headersFile: string | undefined;
  readonly sampler: Parameters<typeof createSampler>[0];
  readonly samplerRatio: number;
}

/** How long a program waits for a collector at its end, in ms. */
const SHUTDOWN_TIMEOUT_MS = 2_000;

/** Reports what OpenTelemetry would write to the console. @param report receives the message of a fault, without its stack */
export function reportFaults(report: (message: string) => void): void {
  const silent = () => {};
  const diagnostics = { error: report, warn: report, info: silent, debug: silent, verbose: silent };
  diag.setLogger(diagnostics, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  setGlobalErrorHandler((error) =>
    report(typeof error === "string" ? error : error.message || `${error.code ?? error.name}`),
  );
}

/** Returns the attributes of this process. Those in OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME take precedence over the others. */
export function createResource(serviceName: string): Resource {
  const own = resourceFromAttributes({ "service.name": serviceName, "service.instance.id": randomUUID() });
  return defaultResource()
    .merge(own)
    .merge(detectResources({ detectors: [envDetector] }));
}

/** Starts the export of traces, for all tracers of the process. */
export async function startTraces(
  { protocol, url, headersFile, sampler, samplerRatio }: TracesConfig,
  limits: TraceLimits | undefined,
  resource: Resource,
): Promise<BasicTracerProvider> {
  const { OTLPTraceExporter } =
    protocol === "http/json"
      ? await import("@opentelemetry/exporter-trace-otlp-http")
      : await import("@opentelemetry/exporter-trace-otlp-proto");
  const chosen = createSampler(sampler, samplerRatio);
  const exporter = new OTLPTraceExporter({ ...(url !== undefined && { url }), ...exportHeaders(headersFile) });
  const provider = new BasicTracerProvider({
    resource,
    sampler: limits === undefined ? chosen : limitedSampler(chosen, limits.bucket),
    spanProcessors: [new BatchSpanProcessor(exporter)],
  });
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  return provider;
}

/** Returns the options of an exporter that reads its headers for each export, so that a replaced credential is used at once. */
export const exportHeaders = (path: string | undefined) =>
  path === undefined ? {} : { headers: async () => parseKeyPairsIntoRecord((await readFile(path, "utf8")).trim()) };

/** Exports what waits, within a bounded time. */
export async function shutDown(...providers: readonly ({ shutdown(): Promise<void> } | undefined)[]): Promise<void> {
  const ended = Promise.allSettled(providers.map((provider) => provider?.shutdown()));
  await Promise.race([ended, sleep(SHUTDOWN_TIMEOUT_MS, undefined, { ref: false })]);
}

export const currentTraceId = (): string | undefined => trace.getSpanContext(context.active())?.traceId;
