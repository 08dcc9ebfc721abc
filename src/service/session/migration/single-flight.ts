import type { Clock } from "../ports.ts";

type Options<T> = {
  /** Whether a result holds for later calls, too. */
  readonly isKept: (result: T) => boolean;
  /** How long such a result is kept, in ms. */
  readonly keepMs: number;
  /** How many results are kept at most. */
  readonly maxKept: number;
  /** How many keys are worked on at most. */
  readonly maxUnderWay: number;
  /** Returns the result of a call that would be one too many. */
  readonly busy: () => T;
  readonly clock: Clock;
};

/** Returns a function whose concurrent calls with the same key share one run of the work. Some results are kept for later calls. */
export function createSingleFlight<T>({ isKept, keepMs, maxKept, maxUnderWay, busy, clock }: Options<T>) {
  const underWay = new Map<string, Promise<T>>();
  /** In the order in which the results expire. */
  const kept = new Map<string, { readonly result: T; readonly until: number }>();

  const keep = (key: string, result: T): void => {
    // A key is kept again only after its result has expired, so this removes the old one.
    for (const [oldest, { until }] of kept) {
      if (kept.size < maxKept && until > clock()) break;
      kept.delete(oldest);
    }
    kept.set(key, { result, until: clock() + keepMs });
  };

  return async (key: string, work: () => Promise<T>): Promise<T> => {
    const known = kept.get(key);
    if (known !== undefined && clock() < known.until) return known.result;
    const shared = underWay.get(key);
    if (shared !== undefined) return shared;
    if (underWay.size >= maxUnderWay) return busy();
    const own = work().finally(() => underWay.delete(key));
    underWay.set(key, own);
    const result = await own;
    if (isKept(result)) keep(key, result);
    return result;
  };
}
