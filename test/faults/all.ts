/** Lists all faults of `npm run test:faults`. */
import { CLUSTER_FAULTS, sentinelFailover } from "./clusters.ts";
import { NO_FAULTS } from "./no-faults.ts";
import { PAIRS } from "./pairs.ts";
import { PROXY_FAULTS, paused, REDIS_FAULTS } from "./redis.ts";
import { SERVICE_FAULTS, serviceClockSteps } from "./services.ts";
import type { AnyFault } from "./world.ts";

export const ALL_FAULTS: readonly AnyFault[] = [
  ...REDIS_FAULTS,
  paused(21_000, 10_000),
  ...PROXY_FAULTS,
  ...CLUSTER_FAULTS,
  sentinelFailover,
  ...SERVICE_FAULTS,
  serviceClockSteps(1_000),
  ...PAIRS,
  ...NO_FAULTS,
];
