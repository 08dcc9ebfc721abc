/** What the service reports of itself. */
import type { Read } from "./reader.ts";
import { oneOf } from "./values.ts";

export function readObservability(read: Read) {
  return {
    logLevel: read("LOG_LEVEL", oneOf("trace", "debug", "info", "warn", "error", "fatal", "silent"), "info" as const),
  };
}
