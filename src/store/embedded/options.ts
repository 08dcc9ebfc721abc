import type { Clock } from "../../session/ports.ts";

export type EmbeddedStoreOptions = {
  /** The database file. Its directory is made (0700) if it is not there. */
  readonly path: string;
  /** The clock of the day. */
  readonly clock: Clock;
  /** Our own clock, ms: never set, and not that of the day. That of the process but for tests. */
  readonly steady?: Clock;
  /** R of rotation.ts, ms. */
  readonly reuseInterval: number;
  /** How long an ended session is remembered: at least the longest access token life, ms. */
  readonly markerLife: number;
};
