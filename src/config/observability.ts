import type { Read } from "./reader.ts";
import { DAY_MS, duration, oneOf } from "./values.ts";

export function readObservability(read: Read) {
  return {
    logLevel: read("LOG_LEVEL", oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent"), "info" as const),
    /** How long events of sessions are kept, in ms; 0 keeps none. */
    eventRetentionMs: read("EVENT_RETENTION", duration(0, 400 * DAY_MS), 7 * DAY_MS),
  };
}
