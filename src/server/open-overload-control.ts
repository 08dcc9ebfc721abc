import type { Config } from "../config/config.ts";
import { createOverloadControl, type OverloadControl } from "../limits/overload.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import { overloadReport } from "../observability/overload.ts";

/** Overload control, as the configuration has it. */
export function openOverloadControl(config: Config, log: Logger, metrics: Metrics): OverloadControl {
  const overload = createOverloadControl({
    ...config.overload,
    reuseIntervalMs: config.reuseIntervalMs,
    // Half of the command timeout: a call that is accepted then still gets its response.
    maxStoreDelayMs: config.redisCommandTimeoutMs / 2,
    onRefused: overloadReport(log, metrics),
    onReply: metrics.stored,
  });
  metrics.watchWaiting(overload.waiting);
  return overload;
}
