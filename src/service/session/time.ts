/**
 * The two scales of time. Both are milliseconds since the epoch, and the compiler keeps them apart; at runtime they are numbers.
 *
 * The store's time continues evenly even if somebody sets a clock. It decides whether a token was reused, a session has expired or a
 * device cookie is fresh. Access tokens, other systems and operators use the wall clock. It is ahead of the store's time by a shift,
 * which the store knows (`shiftMs` of its port).
 *
 * A time is converted where it meets the other scale: in access tokens (src/service/tokens/access-token.ts), beside the times of other
 * systems (identity providers, src/service/signals), and where people see or enter it (src/service/api, the audit, the history of a
 * session). Durations are plain numbers whose names end with their unit.
 */
export type StoreMs = number & { readonly __brand: "StoreMs" };
export type WallMs = number & { readonly __brand: "WallMs" };

export type WallClock = () => WallMs;

/** The machine's wall clock. src/service/composition passes it to the other modules. */
export const systemClock: WallClock = () => wallMs(Date.now());

/** Declares that a number which was read from a store, a token or a clock is a time of the store's scale. */
export function storeMs(time: number): StoreMs {
  return time as StoreMs;
}

export function wallMs(time: number): WallMs {
  return time as WallMs;
}

/** Returns the time that is `durationMs` later, on the same scale. */
export function later<Time extends StoreMs | WallMs>(time: Time, durationMs: number): Time {
  return (time + durationMs) as Time;
}

export function earliest<Time extends StoreMs | WallMs>(one: Time, other: Time): Time {
  return one < other ? one : other;
}

export function latest<Time extends StoreMs | WallMs>(one: Time, other: Time): Time {
  return one > other ? one : other;
}

/** Returns the whole seconds until a time; 0 if it is over. */
export function secondsLeft(until: StoreMs, now: StoreMs): number {
  return Math.max(0, Math.floor((until - now) / 1000));
}

/**
 * Returns whole seconds by the wall clock, as the times of tokens are (RFC 7519 section 2, NumericDate).
 * @param shiftMs by how much the wall clock is ahead of the time, which is the store's
 */
export function secondsOf(time: WallMs): number;
export function secondsOf(time: StoreMs, shiftMs: number): number;
export function secondsOf(time: number, shiftMs = 0): number {
  return Math.floor((time + shiftMs) / 1000);
}

/** @param shiftMs by how much the wall clock is ahead of the store's time */
export function toWallClock(time: StoreMs, shiftMs: number): WallMs {
  return (time + shiftMs) as WallMs;
}

/** @param shiftMs by how much the wall clock is ahead of the store's time */
export function toStoreTime(time: WallMs, shiftMs: number): StoreMs {
  return (time - shiftMs) as StoreMs;
}
