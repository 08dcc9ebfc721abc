/** The session in React. */
"use client";

import { useSyncExternalStore } from "react";
import type { Session } from "./session.ts";
import { type Snapshot, UNKNOWN } from "./snapshot.ts";

/**
 * What is known of the session; renders again when that changes. On a server: `unknown`.
 *
 * @example
 * const { state, claims } = useSession(session);
 */
export function useSession(session: Session): Snapshot {
  return useSyncExternalStore(
    session.subscribe,
    () => session.snapshot,
    () => UNKNOWN,
  );
}
