/** Prometheus metrics, on the admin API's /metrics. Labels come from closed lists only. */
import { Counter, collectDefaultMetrics, Histogram, Registry } from "prom-client";
import type { AuditEvent } from "../session/audit.ts";

export type Metrics = {
  count(event: AuditEvent): void;
  /** A call was answered. @param seconds how long it took */
  handled(method: string, code: string, seconds: number): void;
  /** The exposition format and its content type. */
  expose(): Promise<{ readonly type: string; readonly body: string }>;
};

export function createMetrics(): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const counter = (name: string, help: string, labelNames: string[] = []) =>
    new Counter({ name, help, labelNames, registers: [registry] });
  const created = counter("session_created_total", "Sessions created");
  const renewed = counter("session_renewed_total", "Refreshes served, by rotation outcome", ["outcome"]);
  const ended = counter("session_ended_total", "Sessions ended, by reason", ["reason"]);
  const reused = counter("session_token_reuse_total", "Refresh tokens found reused");
  const failed = counter("session_authn_failed_total", "Credentials refused", ["operation", "reason"]);
  const handled = new Histogram({
    name: "session_rpc_duration_seconds",
    help: "Time until a call was answered, by method and Connect code, whatever the protocol",
    labelNames: ["method", "code"],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
    registers: [registry],
  });
  return {
    handled: (method, code, seconds) => handled.observe({ method, code }, seconds),
    count(event) {
      switch (event.event) {
        case "session_created":
          return created.inc();
        case "session_renewed":
          return renewed.inc({ outcome: event.outcome });
        case "session_ended":
          return ended.inc({ reason: event.reason });
        case "authn_token_reuse":
          return reused.inc();
        case "authn_failed":
          return failed.inc({ operation: event.operation, reason: event.reason });
      }
    },
    expose: async () => ({ type: registry.contentType, body: await registry.metrics() }),
  };
}
