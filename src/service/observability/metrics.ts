/** Prometheus metrics, on the admin API's /metrics. Labels come from closed lists only. */
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { AuditEvent } from "../session/audit.ts";
import { createEventCount, type MakeCounter } from "./audit.ts";
import { FastCounter, FastHistogram } from "./fast-metrics.ts";
import type { LogCounts } from "./logger.ts";

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
  values(): Promise<readonly MetricValues[]>;
  /** Records that an old session was to be migrated, that is, continued as a session of this service. */
  migrated(result: "migrated" | "repeated" | "refused" | "failed"): void;
  /** Records that a request was not traced because the limit of traces is used up. */
  traceLimited(): void;
  /** Returns the metrics in the exposition format, and its content type. */
  expose(): Promise<{ readonly type: string; readonly body: string }>;
};

type ReadSamples = () => Samples | Promise<Samples>;
/** How the values of several workers are combined. `max` and `min` are for what all measure at one source, such as the store. */
type Merge = "sum" | "max" | "min";

/** The values of a gauge by their labels. */
type Samples = readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number }[];

export type MetricValues = {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram" | "summary";
  /** How the values of several workers are combined. */
  readonly aggregator?: string;
  readonly values: readonly {
    readonly value: number;
    readonly labels: Readonly<Record<string, string | number>>;
    /** The name of a histogram's value ends in `_bucket`, `_sum` or `_count`. */
    readonly metricName?: string;
  }[];
};

/** The bounds of the buckets in seconds, from 0.5 ms to 1 s. */
const BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1];
/** Those for signals: a receiver that was unavailable accepts its reports of ended sessions hours late. */
const LAG_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 1, 5, 60, 600, 3600, 86_400];

/** @param log counts of log lines, to be exposed */
export function createMetrics(log?: LogCounts): Metrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const counter: MakeCounter = (name, help, labelNames = []) => new FastCounter({ name, help, labelNames }, registry);
  const histogram = (name: string, help: string, labelNames: [string, string?], buckets = BUCKETS) =>
    new FastHistogram({ name, help, labelNames, buckets }, registry);
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
  const overload = counter("session_overload_refused_total", "Calls refused under overload, by cause", ["cause"]);
  // The counters of refusals are exposed from the start, because a rate needs a value before the first refusal.
  for (const cause of ["store", "event_loop"]) overload.inc(cause, "", 0);
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
  const signals = counter("session_signals_sent_total", "Attempts to send a signal, by outcome", ["kind", "outcome"]);
  const lagHelp = "From the end of a session to when a receiver has accepted its signal";
  const lags = histogram("session_signal_lag_seconds", lagHelp, ["kind"], LAG_BUCKETS);
  if (log !== undefined) countLines(registry, log, counter);
  return {
    streamOpened: (method) => streams.inc({ method }),
    streamClosed: (method) => streams.dec({ method }),
    crossSiteRefused: (header) => crossSite.inc(header),
    connectionRefused: (listener, reason) => refused.inc(listener, reason),
    handled: calls.observe,
    stored: commands.observe,
    refused: (cause) => overload.inc(cause),
    watchWaiting(count) {
      gauge("session_store_commands_waiting", "Commands that wait for the store", () => [
        { labels: {}, value: count() },
      ]);
    },
    gauge,
    signalSent(kind, outcome, lagSeconds) {
      signals.inc(kind, outcome);
      // The clock may have been set back. A negative value would make the sum smaller, which looks like a restart.
      if (outcome === "accepted") lags.observe(kind, "", Math.max(0, lagSeconds));
    },
    migrated: (result) => migrations.inc(result),
    traceLimited: () => tracesLimited.inc(),
    count: createEventCount(counter),
    // The library's types declare `type` as a number, and `metricName` not at all. Both are texts.
    values: async () => (await registry.getMetricsAsJSON()) as unknown as MetricValues[],
    expose: async () => ({ type: registry.contentType, body: await registry.metrics() }),
  };
}

/** How many values the label `event` may have. All further events share one. */
const MAX_EVENTS = 100;

function countLines(registry: Registry, log: LogCounts, counter: MakeCounter): void {
  const labels: [string, string] = ["event", "level"];
  const lines = counter("session_log_lines_total", "Log lines by event", labels);
  const help = "Log lines not written: their event had used up its lines of the second";
  const suppressed = counter("session_log_lines_suppressed_total", help, labels);
  new Counter({
    name: "session_log_lines_lost_total",
    help: "Log lines that the reader of the log did not take",
    registers: [registry],
    collect() {
      this.reset();
      this.inc(log.lost());
    },
  });
  const events = new Set<string>();
  log.onLine((given, level, isSuppressed) => {
    if (events.size < MAX_EVENTS) events.add(given);
    const event = events.has(given) ? given : "other";
    lines.inc(event, level);
    if (isSuppressed) suppressed.inc(event, level);
  });
}

const gaugeOf =
  (registry: Registry): Metrics["gauge"] =>
  (name, help, read, aggregator = "sum") =>
    void new Gauge({
      name,
      help,
      aggregator,
      labelNames: ["listener", "kind", "state", "because"],
      registers: [registry],
      async collect() {
        const samples = await read();
        this.reset();
        for (const { labels, value } of samples) this.set({ ...labels }, value);
      },
    });
