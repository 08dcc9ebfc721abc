import type { PeekableRateLimit, RateLimit } from "../../session/ports.ts";
import { createRateLimit, NO_LIMIT, type Rate } from "./rate-limit.ts";

type RateLimits = {
  /** The limit of refreshes, by session. */
  readonly refreshLimit: PeekableRateLimit;
  /** The limit of bad credentials, by network address. */
  readonly failureLimit: RateLimit;
  /** The limit of new sessions, by subject. */
  readonly createLimit: RateLimit;
};

type RateSettings = { readonly [name in "refresh" | "failures" | "create"]: Rate | undefined };

/** @param subscriberOf returns the network of the subscriber that has an address */
export function createRateLimits(
  { refresh, failures, create }: RateSettings,
  subscriberOf: (address: string) => string,
): RateLimits {
  const limit = (rate: Rate | undefined) => (rate === undefined ? NO_LIMIT : createRateLimit(rate));
  const byAddress = limit(failures);
  return {
    refreshLimit: limit(refresh),
    failureLimit: {
      // Callers with an unknown address are not limited.
      take: (address) => (address === "" ? undefined : byAddress.take(subscriberOf(address))),
      giveBack: (address) => byAddress.giveBack(subscriberOf(address)),
    },
    createLimit: limit(create),
  };
}
