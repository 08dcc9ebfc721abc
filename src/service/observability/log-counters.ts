import { Counter, type Registry } from "prom-client";
import type { FastCounter } from "./fast-metrics.ts";
import type { LogCounts } from "./logger.ts";

export type MakeFastCounter = (name: string, help: string, labelNames: readonly [string, string?]) => FastCounter;

/** How many values the label `event` may have. All further events share one. */
const MAX_EVENTS = 100;

/** Exposes the counts of the log as metrics. */
export function countLines(registry: Registry, log: LogCounts, fastCounter: MakeFastCounter) {
  const registers = [registry];
  const lines = fastCounter("session_log_lines_total", "Log lines by event", ["event", "level"]);
  const suppressed = fastCounter(
    "session_log_lines_suppressed_total",
    "Log lines not written: their event had used up its lines of the second",
    ["event", "level"],
  );
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
    lines.inc(event, level);
    if (isSuppressed) suppressed.inc(event, level);
  });
}
