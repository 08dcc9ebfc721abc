/** The state of the session as a page displays it. */
import type { Realm } from "./realm.ts";
import type { Claims } from "./token.ts";

/**
 * - `unknown`: the kit does not know the state yet.
 * - `active`: somebody is signed in.
 * - `offline`: the service cannot be reached. The last known user is assumed.
 * - `ended`: nobody is signed in.
 */
export type SessionState = "unknown" | "active" | "offline" | "ended";

/** A snapshot is immutable. Every change makes a new object. */
export type Snapshot = {
  readonly state: SessionState;
  /** The claims, for display only. The kit does not verify them; services do. */
  readonly claims?: Claims | undefined;
  /**
   * Whether somebody else is signed in than when this page began: after a sign-in in another tab, or with a session that a sibling domain
   * has planted. The page still shows data of the first user, so reload it.
   */
  readonly changed?: boolean | undefined;
};

export type Display = ReturnType<typeof createDisplay>;

/** Holds the snapshot and the listeners to its changes, until `closed` is aborted. */
export function createDisplay(realm: Realm, closed: AbortSignal) {
  let listeners: (() => void)[] = [];
  let snapshot: Snapshot = { state: "unknown" };
  let subject: string | undefined;
  return {
    get snapshot() {
      return snapshot;
    },
    show(state: SessionState, claims: Claims | undefined): void {
      if (snapshot.state === state && snapshot.claims === claims) return;
      subject ??= claims?.sub;
      snapshot = { state, claims, changed: claims && claims.sub !== subject };
      for (const listener of listeners) {
        // Each listener runs in its own task, so that no foreign code runs while the lock is held. An error that it throws is unhandled.
        realm.setTimeout(listener, 0);
      }
    },
    /** @returns a function that removes the listener */
    listen(listener: () => void): () => void {
      // The wrapper is new for each call, because a function may be added twice.
      const own = () => closed.aborted || (listeners.includes(own) && listener());
      listeners.push(own);
      return () => {
        listeners = listeners.filter((each) => each !== own);
      };
    },
  };
}
