/** The session of the kit as a React hook. */
"use client";

import { useSyncExternalStore } from "react";
import type { Session } from "./session.ts";
import type { Snapshot } from "./snapshot.ts";

/**
 * Returns the snapshot of the session, and renders again when it changes. On a server it is `unknown`, or the snapshot that `initial`
 * describes.
 * @example
 * const { state, claims } = useSession(session);
 */
export function useSession(session: Session): Snapshot {
  return useSyncExternalStore(
    session.subscribe,
    () => session.snapshot,
    () => session.initial,
  );
}
