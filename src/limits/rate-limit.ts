/**
 * Rate limits, in the memory of this instance. The counting is rate-limiter-flexible's, a fixed window per key that begins
 * with its first request. In front of it stands a filter, since a record with a timer per key would cost an honest refresh
 * 2.4 µs (the filter: 0.1 µs), and since the library keeps any number of keys.
 */
import type { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
// @ts-expect-error The package has types for its index alone, and that loads every backend: 24 ms and 12 MB at start.
import MemoryLimiter from "rate-limiter-flexible/lib/RateLimiterMemory.js";
import type { RateLimit } from "../session/ports.ts";
import { createFilter } from "./filter.ts";

/** `count` times per window. */
export type Rate = { readonly count: number; readonly windowMs: number };

export type RateLimitOptions = Rate & {
  /** 32 random bits. */
  readonly seed: number;
  /** Milliseconds that never step back. */
  readonly clock?: () => number;
  /** How many keys are counted exactly at the same time; further ones are not limited. */
  readonly maxKeys?: number;
};

/** About 300 bytes each. */
const MAX_KEYS = 10_000;
/** The most that the filter passes of any key, whatever the limit: in a slot with so many there is a busy key. */
const MAX_ALLOWANCE = 32;

/** Limits nothing. */
export const NO_LIMIT: RateLimit = { take: () => undefined, giveBack() {} };

export function createRateLimit(options: RateLimitOptions): RateLimit {
  const { count, windowMs, seed, clock = () => performance.now(), maxKeys = MAX_KEYS } = options;
  // A quarter at most, so that a key whose slot was used up by another still has most of its own count.
  const allowance = Math.min(Math.floor(count / 4), MAX_ALLOWANCE);
  const filter = createFilter({ allowance, windowMs, clock, seed });
  const limiter: RateLimiterMemory = new MemoryLimiter({
    keyPrefix: "",
    points: count - allowance,
    duration: windowMs / 1000,
  });
  const keys = createKeyCount(windowMs, clock);

  async function takeExactly(key: string): Promise<number | undefined> {
    try {
      if (keys.live() >= maxKeys && (await limiter.get(key)) === null) return undefined;
      if ((await limiter.consume(key)).isFirstInDuration) keys.add();
      return undefined;
    } catch (refusal) {
      // Anything else is a failure of the limiter, which must not refuse a caller.
      if (refusal instanceof Error) return undefined;
      // The library reads the wall clock, which may step.
      return Math.min(Math.max((refusal as RateLimiterRes).msBeforeNext, 1), windowMs);
    }
  }

  return {
    take: (key) => (filter.passes(key) ? undefined : takeExactly(key)),
    giveBack(key) {
      if (filter.giveBack(key)) return;
      limiter
        .get(key)
        .then((found) => found && limiter.reward(key))
        .catch(() => {});
    },
  };
}

/** At most so many keys are kept: those of this window and of the one before, since none outlives a window. */
function createKeyCount(windowMs: number, clock: () => number) {
  let windowEnd = 0;
  let added = 0;
  let addedBefore = 0;
  return {
    live(): number {
      const now = clock();
      if (now >= windowEnd) {
        addedBefore = now >= windowEnd + windowMs ? 0 : added;
        added = 0;
        windowEnd = now + windowMs;
      }
      return added + addedBefore;
    },
    add(): void {
      added++;
    },
  };
}
