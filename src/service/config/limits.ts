/** The settings of rate limits and of overload control. */
import type { Read } from "./reader.ts";
import { duration, integer, type RateSetting, rate, SECOND_MS } from "./values.ts";

const perSeconds = (count: number, seconds: number): RateSetting => ({ count, windowMs: seconds * SECOND_MS });

export function readLimits(read: Read) {
  return {
    rateLimits: {
      refresh: read("RATE_LIMIT_REFRESH", rate, perSeconds(300, 30)),
      failures: read("RATE_LIMIT_FAILURES", rate, perSeconds(1_000, 60)),
      create: read("RATE_LIMIT_CREATE", rate, perSeconds(100, 60)),
      update: read("RATE_LIMIT_UPDATE", rate, perSeconds(60, 60)),
    },
    overload: {
      maxWaiting: read("OVERLOAD_MAX_WAITING", integer(0, 1_000_000), 1_000),
      maxLoopDelayMs: read("OVERLOAD_MAX_LOOP_DELAY", duration(0, 10 * SECOND_MS), 200),
    },
  };
}
