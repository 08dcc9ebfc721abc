/**
 * The two representations of time in the searches. In both, the present time is 0, and every event is at or before it.
 *
 * Dense time covers any real number of milliseconds between two events, and any reuse interval (R). The rules compare ages only with
 * multiples of R/2, so of an age in units of R/2 only the integer part and the order of the fractional parts matter. Ages with the same
 * order form one state, as in the region construction of timed automata.
 *
 * On a grid, R/2 is a few ticks, and every event happens at a tick. There are fewer states, so a search can have more requests, and
 * counterexamples have readable times.
 */
import { type StoreMs, storeMs } from "../../../../../src/service/session/time.ts";

export type Time = {
  readonly dense: boolean;
  /**
   * Half of the reuse interval (R/2), in ticks. In dense time this number must be even. It must also be large enough to distinguish the
   * fractional parts of all times in a state: more than twice the number of times, plus one.
   */
  readonly half: number;
};

export const DENSE: Time = { dense: true, half: 64 };
export const grid = (half: number): Time => ({ dense: false, half });

/** Returns a time so long ago that comparisons with the present no longer depend on it. */
export const longAgo = ({ half }: Time): StoreMs => storeMs(-5 * half);

/** The present time in every world: all other times are relative to it. */
export const NOW = storeMs(0);

/** Returns the fractional part of the age of `time`, in units of `half`. The present is 0, so the age is `-time`. */
const fraction = (time: number, half: number) => -time % half;

/**
 * Returns how long it takes, in ticks, until the comparison of an age with a multiple of R/2 may change its result. R is the reuse
 * interval.
 */
export function untilNextMoment(times: readonly number[], { dense, half }: Time): number {
  if (!dense) return 1;
  const fractions = times.map((time) => fraction(time, half));
  return fractions.length === 0 || fractions.includes(0) ? 1 : half - Math.max(...fractions);
}

/**
 * Returns a function that replaces the fractional parts of times by fixed ones in the same order, so that equivalent states become equal.
 */
export function representative(times: readonly number[], { dense, half }: Time): (time: number) => StoreMs {
  if (!dense) return storeMs;
  const fractions = [...new Set(times.map((time) => fraction(time, half)))]
    .filter((own) => own > 0)
    .sort((a, b) => a - b);
  if (2 * fractions.length + 1 >= half) throw new Error("too many times for this unit");
  return (time) => {
    const own = fraction(time, half);
    return storeMs(own === 0 ? time : time + own - 2 * (fractions.indexOf(own) + 1));
  };
}

/**
 * Returns a function that moves past times closer together. It keeps their order. It also keeps every distance up to `limit` between two
 * times, or between a time and the present.
 */
export function drawnTogether(times: readonly number[], limit: number): (time: number) => StoreMs {
  const places = new Map([[0, 0]]);
  let last = 0;
  let place = 0;
  for (const time of [...new Set(times)].filter((time) => time < 0).sort((a, b) => b - a)) {
    place -= Math.min(limit + 1, last - time);
    last = time;
    places.set(time, place);
  }
  return (time) => storeMs(places.get(time) ?? time);
}
