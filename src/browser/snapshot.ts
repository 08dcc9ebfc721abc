/** What a page shows of its session. */
import type { Claims } from "./token.ts";

/**
 * - `unknown`: not looked yet.
 * - `active`: somebody is signed in.
 * - `offline`: the service cannot be reached; who is signed in is as it was.
 * - `ended`: nobody is signed in.
 */
export type SessionState = "unknown" | "active" | "offline" | "ended";

/** Immutable; a new object whenever something has changed. */
export type Snapshot = {
  readonly state: SessionState;
  /** To show, not to trust: services verify tokens. */
  readonly claims?: Claims | undefined;
};

export const UNKNOWN: Snapshot = { state: "unknown" };
