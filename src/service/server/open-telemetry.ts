import type { Config } from "../config/config.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { Telemetry } from "../observability/telemetry/start.ts";
import { startError } from "./start-error.ts";

/** Loads the SDK only if it is configured. @throws StartError if the libraries, which are optional, are not installed */
export async function openTelemetry(config: Config, metrics: Metrics, log: Logger): Promise<Telemetry | undefined> {
  if (config.telemetry === undefined) return undefined;
  try {
    const { startTelemetry } = await import("../observability/telemetry/start.ts");
    return await startTelemetry({ config: config.telemetry, metrics, log });
  } catch (error) {
    throw startError(error, "OTEL_* variables ask for OpenTelemetry, an optional dependency that cannot be loaded");
  }
}
