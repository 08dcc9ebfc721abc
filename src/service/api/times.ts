/**
 * Converts the times of messages. All of them are by the wall clock, except those of the revocation feed, which are by the clock of the
 * store. No other file of the API creates timestamps.
 */
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type StoreMs, toStoreTime, toWallClock, type WallMs, wallMs } from "../session/time.ts";

export function wallTime(time: WallMs): Timestamp {
  return timestampFromMs(time);
}

/** Converts a time of the store's clock to the wall clock, by which the APIs return times. */
export function shownTime(time: StoreMs, shiftMs: number): Timestamp {
  return wallTime(toWallClock(time, shiftMs));
}

/**
 * Returns a time of the revocation feed, which is the store's own: the feed's times go on steadily when a clock is set. A verifier
 * compares them with each other, and `revoked_until_time` with the claim `sct` of tokens.
 */
export function feedTime(time: StoreMs): Timestamp {
  return timestampFromMs(time);
}

/**
 * Returns the store's time for a time that a caller sends, rounded up to a millisecond. So a session that was created within the same
 * millisecond counts as created before that time.
 */
export function givenTime({ seconds, nanos }: Timestamp, shiftMs: number): StoreMs {
  return toStoreTime(wallMs(Number(seconds) * 1000 + Math.ceil(nanos / 1e6)), shiftMs);
}
