/** Connects a worker to its supervisor, which reports readiness and merges the metrics of all workers. */
import { mergeMetrics } from "../observability/merge-metrics.ts";
import type { Metrics } from "../observability/metrics.ts";
import { HEARTBEAT_MS } from "./heartbeat.ts";
import { type ToSupervisor, type ToWorker, WORKER, type WorkerRole } from "./messages.ts";

export type WorkerParts = {
  /** Reports to the supervisor that the worker is ready, with the text that a single process would print at that time. */
  readonly out: (text: string) => void;
  /** Whether other workers serve the same ports already. This worker then opens its listeners only when the store responds. */
  readonly joinsOthers: boolean;
  /** Returns metrics whose exposition covers all workers. */
  readonly ofAll: (own: Metrics) => Metrics;
  /** Makes a call to the supervisor, which keeps the data that all workers share. */
  readonly callSupervisor: (call: unknown) => Promise<unknown>;
};

/** Returns the parts that a worker needs; undefined in a process that is not a worker. */
export function joinSupervisor(env: NodeJS.ProcessEnv): WorkerParts | undefined {
  const role = env[WORKER] as WorkerRole | undefined;
  if (role === undefined || process.send === undefined) return undefined;
  // If the supervisor is gone, nobody would stop this process, so it ends by itself.
  process.once("disconnect", () => process.exit(1));
  setInterval(() => send({ type: "heartbeat" }), HEARTBEAT_MS).unref();
  const request = createRequester("called");
  return {
    out: (text) => send({ type: "ready", text }),
    joinsOthers: role === "next",
    ofAll: metricsOfAll,
    callSupervisor: async (call) => (await request((id) => ({ type: "call", id, call }))).result,
  };
}

function send(message: ToSupervisor): void {
  // The channel closes when the supervisor ends, and then this process ends as well.
  if (process.connected) process.send?.(message);
}

type Response<Type> = Extract<ToWorker, { readonly type: Type }>;

/** Returns a function that sends a request, and resolves with the message of type `type` that has the same id. */
function createRequester<Type extends "called" | "all_metrics">(type: Type) {
  const waiting = new Map<number, (response: Response<Type>) => void>();
  let lastId = 0;
  process.on("message", (message: ToWorker) => {
    if (message.type !== type) return;
    waiting.get(message.id)?.(message as Response<Type>);
    waiting.delete(message.id);
  });
  return (requestWith: (id: number) => ToSupervisor) => {
    const { promise, resolve } = Promise.withResolvers<Response<Type>>();
    waiting.set(++lastId, resolve);
    send(requestWith(lastId));
    return promise;
  };
}

function metricsOfAll(own: Metrics): Metrics {
  process.on("message", (message: ToWorker) => {
    if (message.type !== "metrics_wanted") return;
    void own.values().then((values) => send({ type: "metrics", id: message.id, values }));
  });
  const request = createRequester("all_metrics");
  const merged = async () => mergeMetrics((await request((id) => ({ type: "metrics_wanted", id }))).all);
  return {
    ...own,
    expose: async () => {
      const { type, body } = await merged();
      return { type, body };
    },
    values: async () => (await merged()).values,
  };
}
