/** The state of the session that a page shows. */
import type { Realm } from "./realm.ts";
import type { Claims } from "./token.ts";

/**
 * - `unknown`: the kit has not found out yet.
 * - `active`: somebody is signed in.
 * - `offline`: the service cannot be reached. The user is the one of before.
 * - `ended`: nobody is signed in.
 */
export type SessionState = "unknown" | "active" | "offline" | "ended";

/** A snapshot is immutable. Every change makes a new object. */
export type Snapshot = {
  readonly state: SessionState;
  /** To show, not to trust: services verify tokens. */
  readonly claims?: Claims | undefined;
  /**
   * Whether another user is signed in than when this page was first signed in, after a sign-in in another tab or with a session that a
   * sibling domain has planted. The page still shows data of the former user, so reload it.
   */
  readonly changed?: boolean | undefined;
};

export const UNKNOWN: Snapshot = { state: "unknown" };

export type Display = ReturnType<typeof createDisplay>;

/** Keeps the snapshot and the listeners to its changes, until `closed` is aborted. */
export function createDisplay(realm: Realm, closed: AbortSignal) {
  let listeners: readonly (() => void)[] = [];
  let snapshot = UNKNOWN;
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
        // In a task of its own: no code of others runs under the lock. What it throws is an unhandled error.
        realm.setTimeout(listener, 0);
      }
    },
    /** @returns what removes the listener */
    listen(listener: () => void): () => void {
      // The same function may come twice.
      const own = () => closed.aborted || (listeners.includes(own) && listener());
      listeners = [...listeners, own];
      return () => {
        listeners = listeners.filter((other) => other !== own);
      };
    },
  };
}
