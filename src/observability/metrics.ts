/** Prometheus metrics, on the admin API's /metrics. Labels come from closed lists only. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { AuditEvent } from "../session/audit.ts";
import type { LogCounts } from "./logger.ts";

export type Metrics = {
  count(event: AuditEvent): void;
  /** A call has ended: a unary one with its response, a stream with its last message. */
  handled(method: string, code: string, seconds: number): void;
  streamOpened(method: string): void;
  streamClosed(method: string): void;
  /** A request was refused as cross-site. @param header the request header that gave it away */
  crossSiteRefused(header: string): void;
  /** A connection was refused: the listener is full, or its address has its share. */
  connectionRefused(listener: string, reason: string): void;
  /** A call was refused under overload. */
  refused(cause: "store" | "event_loop"): void;
  /** @param count how many commands wait for the store, called at each exposition */
  watchWaiting(count: () => number): void;
  /** The exposition format and its content type. */
  expose(): Promise<{ readonly type: string; readonly body: string }>;
};

/** @param log what the log did, where its counts are wanted */
export function createMetrics(log?: LogCounts): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const counter: MakeCounter = (name, help, labelNames = []) =>
    new Counter({ name, help, labelNames, registers: [registry] });
  const overload = counter("session_overload_refused_total", "Calls refused under overload, by cause", ["cause"]);
  const overloadRefused = { store: overload.labels("store"), event_loop: overload.labels("event_loop") };
  const handled = new Histogram({
    name: "session_rpc_duration_seconds",
    help: "Duration of a call until its end, by method and Connect code, whatever the protocol",
    labelNames: ["method", "code"],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
    registers: [registry],
  });
  const streams = new Gauge({
    name: "session_open_streams",
    help: "Streams that are open, by method",
    labelNames: ["method"],
    registers: [registry],
  });
  const crossSite = counter("session_cross_site_refused_total", "Requests refused as cross-site", ["header"]);
  const refused = counter("session_connections_refused_total", "Connections refused", ["listener", "reason"]);
  if (log !== undefined) countLines(registry, log);
  return {
    streamOpened: (method) => streams.inc({ method }),
    streamClosed: (method) => streams.dec({ method }),
    crossSiteRefused: (header) => crossSite.inc({ header }),
    connectionRefused: (listener, reason) => refused.inc({ listener, reason }),
    handled: (method, code, seconds) => handled.observe({ method, code }, seconds),
    refused: (cause) => overloadRefused[cause].inc(),
    watchWaiting(count) {
      new Gauge({
        name: "session_store_commands_waiting",
        help: "Commands that wait for the store",
        registers: [registry],
        collect() {
          this.set(count());
        },
      });
    },
    count: createEventCount(counter),
    expose: async () => ({ type: registry.contentType, body: await registry.metrics() }),
  };
}

type MakeCounter = (name: string, help: string, labelNames?: string[]) => Counter;

/** Counts business events. */
function createEventCount(counter: MakeCounter): Metrics["count"] {
  const created = counter("session_created_total", "Sessions created");
  const renewed = counter("session_renewed_total", "Refreshes served, by rotation outcome", ["outcome"]);
  const ended = counter("session_ended_total", "Sessions ended, by reason", ["reason"]);
  const elevated = counter("session_elevated_total", "Later authentications recorded");
  const allEnded = counter("session_all_ended_total", "Times that everyone was logged out");
  const reused = counter("session_token_reuse_total", "Refresh tokens found reused");
  const failed = counter("session_authn_failed_total", "Credentials refused", ["operation", "reason"]);
  const notAllowed = counter("session_authz_failed_total", "Admin calls outside the scopes of their credential", [
    "operation",
  ]);
  const device = createDeviceCount(counter);
  const limited = counter("session_rate_limited_total", "Requests over a rate limit, by limit", ["limit"]);
  return (event) => {
    switch (event.event) {
      case "session_created":
        return created.inc();
      case "session_renewed":
        return renewed.inc({ outcome: event.outcome });
      case "session_ended":
        return ended.inc({ reason: event.reason });
      case "session_elevated":
        return elevated.inc();
      case "all_sessions_ended":
        return allEnded.inc();
      case "authn_token_reuse":
        return reused.inc();
      case "authn_failed":
        return failed.inc({ operation: event.operation, reason: event.reason });
      case "authz_failed":
        return notAllowed.inc({ operation: event.operation });
      case "rate_limited":
        return limited.inc({ limit: event.limit });
      default:
        return device(event);
    }
  };
}

type DeviceEvent = Extract<AuditEvent, { event: `device_${string}` }>;

function createDeviceCount(counter: MakeCounter): (event: DeviceEvent) => void {
  const registered = counter("session_device_registered_total", "Device keys registered");
  const bound = counter("session_device_bound_total", "Device keys used for the first time");
  const renewed = counter("session_device_renewed_total", "Device cookies renewed");
  const skipped = counter("session_device_renewal_skipped_total", "Refreshes of browsers that could not renew");
  const missing = counter("session_device_proof_missing_total", "Refreshes of bound sessions without a device cookie");
  const unbound = counter("session_device_unbound_total", "Device keys taken away");
  const refused = counter("session_device_refused_total", "Device keys and proofs refused", ["operation", "reason"]);
  return (event) => {
    switch (event.event) {
      case "device_registered":
        return registered.inc();
      case "device_bound":
        return bound.inc();
      case "device_renewed":
        return renewed.inc();
      case "device_renewal_skipped":
        return skipped.inc();
      case "device_proof_missing":
        return missing.inc();
      case "device_unbound":
        return unbound.inc();
      case "device_key_refused":
        return refused.inc({ operation: "RegisterDevice", reason: event.reason });
      case "device_proof_refused":
        return refused.inc({ operation: event.operation, reason: event.reason });
    }
  };
}

/** Values of the label `event`; further ones share one. */
const MAX_EVENTS = 100;

function countLines(registry: Registry, log: LogCounts) {
  const registers = [registry];
  const labelNames = ["event", "level"];
  const lines = new Counter({ name: "session_log_lines_total", help: "Log lines by event", labelNames, registers });
  const suppressed = new Counter({
    name: "session_log_lines_suppressed_total",
    help: "Log lines not written: their event had used up its lines of the second",
    labelNames,
    registers,
  });
  new Counter({
    name: "session_log_lines_lost_total",
    help: "Log lines that the reader of the log did not take",
    registers,
    collect() {
      this.reset();
      this.inc(log.lost());
    },
  });
  const events = new Set<string>();
  log.onLine((given, level, isSuppressed) => {
    if (events.size < MAX_EVENTS) events.add(given);
    const event = events.has(given) ? given : "other";
    lines.inc({ event, level });
    if (isSuppressed) suppressed.inc({ event, level });
  });
}
