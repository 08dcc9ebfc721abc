/**
 * Limits rates in the memory of this instance. Each key has a fixed window, which begins with the key's first request.
 *
 * Memory is bounded by two generations of keys. A key that is seen moves to the young generation. When that one is full, it becomes the old
 * one, and the keys of the old one are forgotten. So a busy key stays counted, however many other keys appear.
 */
import { steadyClock } from "../../../platform/clock/turns.ts";
import type { PeekableRateLimit, RateLimit } from "../../session/ports.ts";

/** Allows `count` uses of a key per window. */
type Rate = { readonly count: number; readonly windowMs: number };

type Options = Rate & {
  /** Returns milliseconds that never step back. Default: the steady clock. */
  readonly clock?: () => number;
  /** How many keys are counted at the same time. */
  readonly maxKeys?: number;
};

/** How many keys both generations have together. A key takes about 130 bytes, so a limit takes at most 6.5 MB. */
const MAX_KEYS = 50_000;

type Window = { taken: number; endsAt: number };

export const NO_LIMIT: PeekableRateLimit = { take: () => undefined, peek: () => undefined, giveBack() {} };

export function createRateLimit(options: Options): PeekableRateLimit {
  const { count, windowMs, clock = steadyClock, maxKeys = MAX_KEYS } = options;
  let young = new Map<string, Window>();
  let old = new Map<string, Window>();

  return {
    take(key) {
      let window = young.get(key);
      if (window === undefined) {
        window = old.get(key) ?? { taken: 0, endsAt: Number.NEGATIVE_INFINITY };
        if (young.size >= maxKeys / 2) {
          old = young;
          young = new Map();
        }
        young.set(key, window);
      }
      const atMs = clock();
      if (atMs >= window.endsAt) {
        window.taken = 0;
        window.endsAt = atMs + windowMs;
      }
      if (window.taken >= count) return window.endsAt - atMs;
      window.taken++;
      return undefined;
    },
    peek(key) {
      const window = young.get(key) ?? old.get(key);
      if (window === undefined || window.taken < count) return undefined;
      const waitMs = window.endsAt - clock();
      return waitMs > 0 ? waitMs : undefined;
    },
    giveBack(key) {
      const window = young.get(key) ?? old.get(key);
      if (window !== undefined && window.taken > 0) window.taken--;
    },
  };
}

type RateLimits = {
  /** The limit of refreshes, by session. */
  readonly refreshLimit: PeekableRateLimit;
  /** The limit of bad credentials, by network address. */
  readonly failureLimit: RateLimit;
  /** The limit of new sessions, by subject. */
  readonly createLimit: RateLimit;
  /** The limit of updates, by session. */
  readonly updateLimit: RateLimit;
};

type RateSettings = { readonly [name in "refresh" | "failures" | "create" | "update"]: Rate | undefined };

/** @param subscriberOf returns the network of the subscriber that has an address */
export function createRateLimits(
  { refresh, failures, create, update }: RateSettings,
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
    updateLimit: limit(update),
  };
}
