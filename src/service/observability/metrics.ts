/** Prometheus metrics, on the admin API's /metrics. Labels come from closed lists only. */
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { AuditEvent } from "../session/audit.ts";
import { createEventCount, type MakeCounter } from "./audit.ts";
import { FastCounter, FastHistogram } from "./fast-metrics.ts";
import { countLines, type MakeFastCounter } from "./log-counters.ts";
import type { LogCounts } from "./logger.ts";
import { createSignalCount } from "./signal-count.ts";

export type Metrics = {
  count(event: AuditEvent): void;
  /** Records the end of a call. A unary call ends with its response, a stream with its last message. */
  handled(method: string, code: string, seconds: number): void;
  streamOpened(method: string): void;
  streamClosed(method: string): void;
  /** Records a request that was refused as cross-site. @param header the request header that revealed it */
  crossSiteRefused(header: string): void;
  /** Records a refused connection: the listener is full, or its address has reached its limit. */
  connectionRefused(listener: string, reason: string): void;
  /** Records a call that was refused under overload. */
  refused(cause: "store" | "event_loop"): void;
  /** Records an attempt to tell a receiver that a session has ended (a signal). @param lagSeconds the time since that end */
  signalSent(kind: string, outcome: string, lagSeconds: number): void;
  /** @param count returns how many commands wait for the store; called at each exposition */
  watchWaiting(count: () => number): void;
  /** Records the duration of a command of the store, in seconds. @param outcome whether the store responded, even with a failure */
  stored(operation: string, outcome: "replied" | "lost", seconds: number): void;
  /** Adds a gauge. @param read returns its values at each exposition @param merge how the values of several workers combine (sum) */
  gauge(name: string, help: string, read: ReadSamples, merge?: Merge): void;
  /** Returns all metrics as objects. */
  values(): Promise<readonly MetricValues[]>;
  /** Records that an old session was to be migrated, that is, continued as a session of this service. */
  migrated(result: "migrated" | "repeated" | "refused" | "failed"): void;
  /** Records that a request was not traced because the limit of traces is used up. */
  traceLimited(): void;
  /** Returns the metrics in the exposition format, and its content type. */
  expose(): Promise<{ readonly type: string; readonly body: string }>;
};

type ReadSamples = () => Samples | Promise<Samples>;
/** How the values of several workers are combined. `max` is for a value that all workers measure at one source, such as the store. */
type Merge = "sum" | "max";

/** The values of a gauge by their labels. */
type Samples = readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];

/** The bounds of the buckets in seconds, from 0.5 ms to 1 s. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
export type MetricValues = {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram" | "summary";
  readonly values: readonly {
    readonly value: number;
    readonly labels: Readonly<Record<string, string | number>>;
    /** The name of a histogram's value ends in `_bucket`, `_sum` or `_count`. */
    readonly metricName?: string;
  }[];
};

/** @param log counts of log lines, to be exposed */
export function createMetrics(log?: LogCounts): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const counter: MakeCounter = (name, help, labelNames = []) =>
    new Counter({ name, help, labelNames, registers: [registry] });
  const overload = counter("session_overload_refused_total", "Calls refused under overload, by cause", ["cause"]);
  const overloadRefused = { store: overload.labels("store"), event_loop: overload.labels("event_loop") };
  // The counters of refusals are exposed from the start, because a rate needs a value before the first refusal.
  for (const refused of Object.values(overloadRefused)) refused.inc(0);
  const streams = new Gauge({
    name: "session_open_streams",
    help: "Streams that are open, by method",
    labelNames: ["method"],
    registers: [registry],
  });
  const gauge = gaugeOf(registry);
  const crossSite = counter("session_cross_site_refused_total", "Requests refused as cross-site", ["header"]);
  const refused = counter("session_connections_refused_total", "Connections refused", ["listener", "reason"]);
  const tracesLimited = counter("session_traces_limited_total", "Requests not traced: the limit of traces is used up");
  const migrations = counter("session_migrations_total", "Old sessions asked for, by result", ["result"]);
  const fastCounter: MakeFastCounter = (name, help, labelNames) =>
    new FastCounter({ name, help, labelNames }, registry);
  if (log !== undefined) countLines(registry, log, fastCounter);
  return {
    streamOpened: (method) => streams.inc({ method }),
    streamClosed: (method) => streams.dec({ method }),
    crossSiteRefused: (header) => crossSite.inc({ header }),
    connectionRefused: (listener, reason) => refused.inc({ listener, reason }),
    ...createDurations(registry),
    refused: (cause) => overloadRefused[cause].inc(),
    watchWaiting(count) {
      gauge("session_store_commands_waiting", "Commands that wait for the store", () => [
        { labels: {}, value: count() },
      ]);
    },
    gauge,
    signalSent: createSignalCount(registry),
    migrated: (result) => migrations.inc({ result }),
    traceLimited: () => tracesLimited.inc(),
    count: createEventCount(counter, fastCounter),
    // The library's types declare `type` as a number, and `metricName` not at all. Both are texts.
    values: async () => (await registry.getMetricsAsJSON()) as unknown as MetricValues[],
    expose: async () => ({ type: registry.contentType, body: await registry.metrics() }),
  };
}

function createDurations(registry: Registry): Pick<Metrics, "handled" | "stored"> {
  const histogram = (name: string, help: string, labelNames: readonly [string, string]) =>
    new FastHistogram({ name, help, labelNames, buckets: BUCKETS }, registry);
  const calls = histogram(
    "session_rpc_duration_seconds",
    "Duration of a call until its end, by method and Connect code, whatever the protocol",
    ["method", "code"],
  );
  const commands = histogram(
    "session_store_duration_seconds",
    "Duration of a command of the store, by operation and whether the store replied",
    ["operation", "outcome"],
  );
  return { handled: calls.observe, stored: commands.observe };
}

const gaugeOf =
  (registry: Registry): Metrics["gauge"] =>
  (name, help, read, aggregator = "sum") =>
    void new Gauge({
      ...{ name, help, aggregator, labelNames: ["listener", "kind", "state", "because"], registers: [registry] },
      async collect() {
        const samples = await read();
        this.reset();
        for (const { labels, value } of samples) this.set({ ...labels }, value);
      },
    });
