/**
 * Represents time in the searches. The present time of a world is 0, and every event lies at or before it.
 *
 * Dense time: the rules compare ages with multiples of R/2 only, so only the order of the fractional parts of the ages (in units of
 * R/2) can matter. Each class of that order is one state, as in the region construction of timed automata. The result of a search
 * holds for every R and for every real number of milliseconds between two events.
 * Time on a grid: R/2 is a few ticks, and every event happens on a tick. There are fewer states, so a search can have more requests,
 * and a trace has plain times.
 */
import { type StoreMs, storeMs } from "../../../src/session/time.ts";

export type Time = {
  readonly dense: boolean;
  /** Ticks in R/2. Dense: an even number, more than twice the number of times that a world holds, plus one. */
  readonly half: number;
};

export const DENSE: Time = { dense: true, half: 64 };
export const grid = (half: number): Time => ({ dense: false, half });

/** Returns a time so long ago that it has no part in comparisons with the present any more. */
export const longAgo = ({ half }: Time): StoreMs => storeMs(-5 * half);

/** The present time in every world: all other times are relative to it. */
export const NOW = storeMs(0);

/** Returns the fractional part of the age, which is -time. */
const fraction = (time: number, half: number) => -time % half;

/** Returns how far away the next moment is at which any comparison may change its result. */
export function untilNextMoment(times: readonly number[], { dense, half }: Time): number {
  if (!dense) return 1;
  const fractions = times.map((time) => fraction(time, half));
  return fractions.length === 0 || fractions.includes(0) ? 1 : half - Math.max(...fractions);
}

/** Returns a function that moves times to fixed fractional parts, of which only the order stays. Regions that are alike become equal. */
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

/** Keeps the order of times, and every distance up to `limit`, now included; greater ones shrink. The future stays where it is. */
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
