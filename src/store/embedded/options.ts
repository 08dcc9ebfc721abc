import type { Clock } from "../../session/ports.ts";
import type { WallClock } from "../../session/time.ts";

/** The path of a database that exists only while it is open (SQLite's name for it). */
export const IN_MEMORY = ":memory:";

export type EmbeddedStoreOptions = {
  /** The database file, or IN_MEMORY. Its directory is created (0700) if it does not exist. */
  readonly path: string;
  readonly clock: WallClock;
  /** A monotonic clock, in ms. Default: the monotonic clock of the process; tests replace it. */
  readonly steady?: Clock;
  /** The reuse interval of refresh tokens (`R` in session/rotation.ts), in ms. */
  readonly reuseIntervalMs: number;
  /** How long an ended session is remembered, in ms. It is at least the longest life of an access token. */
  readonly markerLifeMs: number;
  /** How long the signal log keeps signals that a subscription has not read, in ms. Default: a day. */
  readonly signalsRetentionMs?: number;
};
