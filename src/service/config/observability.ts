/** The settings of the log, of session events, and of OpenTelemetry, whose libraries read their remaining variables themselves. */
import type { AddFault, Read } from "./reader.ts";
import { readSecretFile } from "./secrets.ts";
import { boolean, DAY_MS, duration, integer, invalid, oneOf, rate, SECOND_MS, text, valid } from "./values.ts";

export function readObservability(read: Read) {
  return {
    logLevel: read("LOG_LEVEL", oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent"), "info" as const),
    /** How long events of sessions are kept, in ms; 0 keeps none. */
    eventRetentionMs: read("EVENT_RETENTION", duration(0, 400 * DAY_MS), 7 * DAY_MS),
  };
}

const SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;

export type TelemetryConfig = Exclude<ReturnType<typeof readTelemetry>["telemetry"], undefined>;

export function readTelemetry(read: Read, addFault: AddFault) {
  const isDisabled = read("OTEL_SDK_DISABLED", boolean, false);
  const endpoints = {
    all: read("OTEL_EXPORTER_OTLP_ENDPOINT", httpUrl, undefined),
    traces: read("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", httpUrl, undefined),
    metrics: read("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", httpUrl, undefined),
  };
  const exporters = {
    traces: read("OTEL_TRACES_EXPORTER", oneOf("otlp", "none"), undefined),
    metrics: read("OTEL_METRICS_EXPORTER", oneOf("otlp", "prometheus", "none"), undefined),
  };
  const isWanted = (kind: "traces" | "metrics") =>
    exporters[kind] === undefined
      ? endpoints.all !== undefined || endpoints[kind] !== undefined
      : exporters[kind] === "otlp";
  const settings = {
    traces: isWanted("traces"),
    metrics: isWanted("metrics"),
    protocol: read("OTEL_EXPORTER_OTLP_PROTOCOL", oneOf("http/protobuf", "http/json"), "http/protobuf" as const),
    /** The file of the headers of exports, which may hold a credential. It is read for each export. */
    headersFile: read("OTEL_EXPORTER_OTLP_HEADERS_FILE", headersFile, undefined),
    serviceName: read("OTEL_SERVICE_NAME", text(256), "session-service"),
    sampler: read("OTEL_TRACES_SAMPLER", oneOf(...SAMPLERS), "parentbased_always_on" as const),
    samplerRatio: read("OTEL_TRACES_SAMPLER_ARG", ratio, 1),
    metricIntervalMs: read("OTEL_METRIC_EXPORT_INTERVAL", integer(SECOND_MS, 3_600_000), 60 * SECOND_MS),
    traceLimit: read("TRACE_LIMIT", rate, { count: 100, windowMs: SECOND_MS }),
  };
  if (!isDisabled && exporters.traces === "none" && endpoints.traces !== undefined) {
    addFault("OTEL_TRACES_EXPORTER is none, and OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set");
  }
  const isOn = !isDisabled && (settings.traces || settings.metrics);
  return { telemetry: isOn ? settings : undefined };
}

/** Parses the path of a file that can be read as the text of a setting. */
function headersFile(path: string) {
  const content = readSecretFile(path, text(8192));
  return content.ok ? valid(path) : content;
}

function httpUrl(given: string) {
  const protocol = URL.canParse(given) && !/\s/.test(given) ? new URL(given).protocol : "";
  return protocol === "http:" || protocol === "https:" ? valid(given) : invalid("is not an http:// or https:// URL");
}

function ratio(given: string) {
  const value = Number(given);
  return given.trim() !== "" && value >= 0 && value <= 1 ? valid(value) : invalid("is not a number from 0 to 1");
}
