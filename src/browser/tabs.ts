/**
 * What the tabs of one origin do together. All of it only saves requests: the server's rotation tolerates any number of
 * tabs, so every wait here ends by itself, and then the tab acts alone.
 */
import { type Realm, sleep } from "./realm.ts";
import type { HeldToken } from "./token.ts";

/** How long a refresh of another tab is waited for, ms. */
const LOCK_WAIT_MS = 3_000;
/**
 * A frozen tab may hold a lock indefinitely. Tabs that have waited for it in vain meet at the next lock, so that still only
 * one of them makes the request.
 */
const LOCK_COUNT = 3;

export type TokenMessage = Pick<HeldToken, "text" | "dueMs" | "replacement"> & {
  readonly type: "token";
  /** When the token was issued, by the wall clock of this device. */
  readonly bornAtMs: number;
};

export type TabMessage =
  /** A tab that has a newer token sends it to `replyTo`. */
  | { readonly type: "ask"; readonly newerThan: number; readonly replyTo: string; readonly sid: string | undefined }
  | TokenMessage
  /** `sid` is absent where no token was ever held. */
  | { readonly type: "ended"; readonly sid: string | undefined }
  /** The service could not be reached. */
  | { readonly type: "failed"; readonly failures: number; readonly waitMs: number }
  /** Somebody has signed in. */
  | { readonly type: "began" };

/**
 * Runs `request` while no other tab runs its own, as far as that can be had in a bounded time.
 *
 * @param settled aborted when the request is not needed any more: then it is not made
 */
export async function exclusively(
  realm: Realm,
  name: string,
  settled: AbortSignal,
  request: () => Promise<void>,
): Promise<void> {
  let held = false;
  const turn = async () => {
    held = true;
    if (!settled.aborted) await request();
  };
  for (let level = 0; level < LOCK_COUNT && !held && !settled.aborted; level++) {
    const wait = new AbortController();
    const signal = AbortSignal.any([settled, wait.signal]);
    sleep(realm, LOCK_WAIT_MS, signal).then(() => wait.abort());
    try {
      await realm.navigator?.locks?.request(name + level, { signal }, turn);
    } catch {
      // Too long a wait, or no locks here. `request` itself never rejects.
    }
    wait.abort();
  }
  if (!held) await turn();
}
