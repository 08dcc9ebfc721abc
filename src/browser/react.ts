/** The session of the kit as a React hook. */
"use client";

import { useEffect, useRef, useSyncExternalStore } from "react";
import type { Initial, Session } from "./session.ts";
import type { Snapshot } from "./snapshot.ts";

/**
 * Returns the snapshot of the session, and renders again when it changes. On a server it is `unknown`, or the snapshot that `initial`
 * describes.
 * @param initial the property of the page with which the session was created. When the server renders the page with another session, after
 * a sign-in or a sign-out by a server action, all tabs learn of it at once
 * @example
 * const { state, claims } = useSession(session, initial);
 */
export function useSession(session: Session, initial?: Initial): Snapshot {
  const sid = initial?.claims.sid;
  const { state, claims } = session.snapshot;
  // The session may still be that of a former user: no component was mounted when the server rendered the first page of this one.
  const begunWith = useRef(initial && state !== "unknown" ? claims?.sid : sid);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the server renders `initial` anew with each page
  useEffect(() => {
    if (begunWith.current === sid) return;
    begunWith.current = sid;
    // If the session cannot be determined, the snapshot says so.
    session.begin(initial).catch(() => {});
  }, [session, sid]);
  return useSyncExternalStore(
    session.subscribe,
    () => session.snapshot,
    () => session.initial,
  );
}
