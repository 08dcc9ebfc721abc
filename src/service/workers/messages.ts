/** The supervisor and its workers run the same code, so their messages need no validation. */
import type { MetricValues } from "../observability/metrics.ts";

export type ToSupervisor =
  /** `text` is what the worker would print if it ran alone. */
  | { readonly type: "ready"; readonly text: string }
  /** Shows that the worker runs (heartbeat.ts). */
  | { readonly type: "heartbeat" }
  /** A client has requested the metrics of the service from this worker. */
  | { readonly type: "metrics_wanted"; readonly id: number }
  | { readonly type: "metrics"; readonly id: number; readonly values: readonly MetricValues[] }
  | { readonly type: "call"; readonly id: number; readonly call: unknown };

export type ToWorker =
  | { readonly type: "metrics_wanted"; readonly id: number }
  /** The metrics of all workers, including those that have ended. */
  | { readonly type: "all_metrics"; readonly id: number; readonly all: readonly (readonly MetricValues[])[] }
  /** The result of a call; the field is absent if the call returned undefined. */
  | { readonly type: "called"; readonly id: number; readonly result?: unknown };

/** The variable that makes a process a worker of the supervisor. */
export const WORKER = "SESSION_SERVICE_WORKER";
/** The role of a worker: the first one to start, or one that starts beside running workers. */
export type WorkerRole = "first" | "next";
