/** The rate limits of an instance. */

import { subnetOf } from "../net/subnet.ts";
import type { RateLimit } from "../session/ports.ts";
import { createRateLimit, NO_LIMIT, type Rate } from "./rate-limit.ts";

export type RateLimits = {
  /** Refreshes, by session. */
  readonly refreshLimit: RateLimit;
  /** Bad credentials, by network address. */
  readonly failureLimit: RateLimit;
  /** New sessions, by subject. */
  readonly createLimit: RateLimit;
};

export type RateSettings = {
  readonly refresh: Rate | undefined;
  readonly failures: Rate | undefined;
  readonly create: Rate | undefined;
};

export function createRateLimits({ refresh, failures, create }: RateSettings): RateLimits {
  const limit = (rate: Rate | undefined) => (rate === undefined ? NO_LIMIT : createRateLimit(rate));
  const byAddress = limit(failures);
  return {
    refreshLimit: limit(refresh),
    failureLimit: {
      // Callers with an unknown address are not limited.
      take: (address) => (address === "" ? undefined : byAddress.take(subnetOf(address))),
      giveBack: (address) => byAddress.giveBack(subnetOf(address)),
    },
    createLimit: limit(create),
  };
}
