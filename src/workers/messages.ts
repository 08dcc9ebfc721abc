/** What the supervisor and its workers send each other. Both run the same code, so that a message needs no check of its form. */
import type { MetricValues } from "../observability/metrics.ts";

export type ToSupervisor =
  /** The worker serves. `text` is what it would print as a process of its own. */
  | { readonly type: "ready"; readonly text: string }
  /** The worker was asked for the metrics of the service. */
  | { readonly type: "metrics_wanted"; readonly id: number }
  /** The metrics of this worker. */
  | { readonly type: "metrics"; readonly id: number; readonly values: readonly MetricValues[] }
  /** A call of what the supervisor keeps for all workers. */
  | { readonly type: "call"; readonly id: number; readonly call: unknown };

export type ToWorker =
  | { readonly type: "metrics_wanted"; readonly id: number }
  /** The metrics of all workers, those that have ended included. */
  | { readonly type: "all_metrics"; readonly id: number; readonly all: readonly (readonly MetricValues[])[] }
  /** The result of a call; without `result` it is undefined. */
  | { readonly type: "called"; readonly id: number; readonly result?: unknown };

/** The variable that makes a process a worker of the supervisor. */
export const WORKER = "SESSION_SERVICE_WORKER";
/** The first worker, or one that joins others. */
export type WorkerRole = "first" | "next";
