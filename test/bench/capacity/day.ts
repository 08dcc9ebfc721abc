/**
 * Simulates a day of many clients, second by second. A client refreshes when its token is about to expire. After a failure it waits for a
 * random part of 1 s, 2 s, 4 s … up to a minute, as the browser kit does. The simulation only counts the clients that are due in each
 * second, so its duration does not depend on how many there are.
 */

const MAX_BACKOFF_S = 60;
/** Returns the longest wait of a client after this many failures, in s. The browser kit uses the same limits (src/browser/waits.ts). */
export const backoffS = (failures: number): number => Math.min(MAX_BACKOFF_S, 2 ** failures);
/** After this many failures the longest wait of a client no longer grows. */
const ATTEMPTS = 8;
/** The shortest life of a token relative to the longest: lives are shortened at random (src/service/tokens). */
const SHORTEST_LIFE = 0.8;

export type Day = {
  readonly clients: number;
  readonly tokenLifeS: number;
  /** Refreshes that all instances together can serve in a second. */
  readonly capacity: number;
  readonly seconds: number;
  /** The share of the capacity that remains in a range of seconds, 0 to 1. */
  readonly incidents: readonly { readonly fromS: number; readonly toS: number; readonly left: number }[];
};

type Second = { readonly offered: number; readonly served: number };

/** Simulates the day, and returns the counts of every second. At the beginning, the clients have tokens of all ages. */
export function simulate({ clients, tokenLifeS, capacity, seconds, incidents }: Day): Second[] {
  const due = Array.from({ length: ATTEMPTS }, () => new Float64Array(seconds + tokenLifeS + MAX_BACKOFF_S + 1));
  begin(due[0] as Float64Array, clients, tokenLifeS);
  const day: Second[] = [];
  for (let now = 0; now < seconds; now++) {
    const offered = due.reduce((sum, ofAttempt) => sum + (ofAttempt[now] as number), 0);
    const left = incidents.find(({ fromS, toS }) => fromS <= now && now < toS)?.left ?? 1;
    const served = Math.min(offered, capacity * left);
    spread(due[0] as Float64Array, served, now + SHORTEST_LIFE * tokenLifeS, now + tokenLifeS);
    for (const [attempt, ofAttempt] of due.entries()) {
      const failed = (ofAttempt[now] as number) * (offered === 0 ? 0 : 1 - served / offered);
      const next = due[Math.min(attempt + 1, ATTEMPTS - 1)] as Float64Array;
      spread(next, failed, now + 1, now + 1 + backoffS(attempt));
    }
    day.push({ offered, served });
  }
  return day;
}

/** Adds clients to the numbers of those that will refresh in each second, evenly distributed over a range of seconds. */
function spread(due: Float64Array, clients: number, fromS: number, toS: number): void {
  const [from, to] = [Math.floor(fromS), Math.max(Math.floor(fromS) + 1, Math.floor(toS))];
  for (let at = from; at < to; at++) due[at] = (due[at] ?? 0) + clients / (to - from);
}

/**
 * Sets how many clients refresh in each second at the beginning, when their tokens have random ages. Lives are shortened at random, so a
 * token may expire at any time after 0.8 of the longest life.
 */
function begin(due: Float64Array, clients: number, tokenLifeS: number): void {
  const shortest = Math.floor(SHORTEST_LIFE * tokenLifeS);
  const lives = (at: number) => (at < shortest ? 1 : (tokenLifeS - at) / (tokenLifeS - shortest));
  const total = Array.from({ length: tokenLifeS }, (_, at) => lives(at)).reduce((sum, share) => sum + share, 0);
  for (let at = 0; at < tokenLifeS; at++) due[at] = (clients * lives(at)) / total;
}

export type Summary = {
  /** The most requests in one second, relative to those of the first second. */
  readonly peak: number;
  /** How many seconds after the last incident all requests are served again. */
  readonly recoveryS: number;
  readonly refused: number;
};

export function summary(day: readonly Second[], { incidents }: Day): Summary {
  const usual = day[0]?.offered ?? 1;
  const end = Math.max(0, ...incidents.map(({ toS }) => toS));
  const last = day.findLastIndex(({ offered, served }) => served < offered * 0.999);
  return {
    peak: Math.max(...day.map(({ offered }) => offered)) / usual,
    recoveryS: Math.max(0, last + 1 - end),
    refused: day.reduce((sum, { offered, served }) => sum + offered - served, 0),
  };
}
