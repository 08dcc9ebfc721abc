/** The worker's side of several workers: it reports to the supervisor, and serves the metrics of all workers as its own. */
import { mergeMetrics } from "../observability/merge-metrics.ts";
import type { Metrics, MetricValues } from "../observability/metrics.ts";
import { type ToSupervisor, type ToWorker, WORKER, type WorkerRole } from "./messages.ts";

export type WorkerParts = {
  /** Reports to the supervisor that the worker is ready, instead of printing it. */
  readonly out: (text: string) => void;
  /** Whether other workers serve the same ports already. Then the listeners wait for the store. */
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
  const joinsOthers = role === "next";
  return {
    out: (text) => send({ type: "ready", text }),
    joinsOthers,
    ofAll: metricsOfAll,
    callSupervisor: createCaller(),
  };
}

function send(message: ToSupervisor): void {
  // The channel closes when the supervisor ends, and then this process ends as well.
  if (process.connected) process.send?.(message);
}

function createCaller(): WorkerParts["callSupervisor"] {
  const waiting = new Map<number, (result: unknown) => void>();
  let lastId = 0;
  process.on("message", (message: ToWorker) => {
    if (message.type !== "called") return;
    waiting.get(message.id)?.(message.result);
    waiting.delete(message.id);
  });
  return (call) =>
    new Promise((resolve) => {
      const id = ++lastId;
      waiting.set(id, resolve);
      send({ type: "call", id, call });
    });
}

function metricsOfAll(own: Metrics): Metrics {
  const waiting = new Map<number, (all: readonly (readonly MetricValues[])[]) => void>();
  let lastId = 0;
  process.on("message", (message: ToWorker) => {
    if (message.type === "metrics_wanted") {
      void own.values().then((values) => send({ type: "metrics", id: message.id, values }));
    } else if (message.type === "all_metrics") {
      waiting.get(message.id)?.(message.all);
      waiting.delete(message.id);
    }
  });
  const merged = async () => {
    const id = ++lastId;
    const all = new Promise<readonly (readonly MetricValues[])[]>((resolve) => waiting.set(id, resolve));
    send({ type: "metrics_wanted", id });
    return mergeMetrics(await all);
  };
  return {
    ...own,
    expose: async () => {
      const { type, body } = await merged();
      return { type, body };
    },
    values: async () => (await merged()).values,
  };
}
