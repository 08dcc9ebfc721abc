import type { Clock } from "../../session/ports.ts";
import type { WallClock } from "../../session/time.ts";

/** The path of a database that is gone when it is closed (SQLite's name for it). */
export const IN_MEMORY = ":memory:";

export type EmbeddedStoreOptions = {
  /** The database file, or IN_MEMORY. Its directory is made (0700) if it is not there. */
  readonly path: string;
  readonly clock: WallClock;
  /** Our own clock, ms: never set. That of the process but for tests. */
  readonly steady?: Clock;
  /** R of rotation.ts, ms. */
  readonly reuseIntervalMs: number;
  /** How long an ended session is remembered: at least the longest access token life, ms. */
  readonly markerLifeMs: number;
};
