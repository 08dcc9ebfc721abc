/**
 * What the tabs of one origin do together. All of it only saves requests: the server's rotation tolerates any number of
 * tabs, so every wait here ends by itself, and then the tab acts alone.
 */
import { type ChannelLike, deadline, type Realm } from "./realm.ts";
import type { HeldToken } from "./token.ts";

/** How long a refresh of another tab is waited for, ms. */
const LOCK_WAIT_MS = 3_000;
/**
 * A frozen tab may hold a lock indefinitely. Tabs that have waited for it in vain meet at the next lock, so that still only
 * one of them makes the request.
 */
const LOCK_COUNT = 3;
/**
 * The last lock is waited for longer than its holder needs, and not equally long by all: else they would all make a request.
 * This many times as long as the others, and up to once more.
 */
const LAST_WAIT = 6;

export type TokenMessage = Pick<HeldToken, "text" | "dueMs" | "replacement"> & {
  readonly type: "token";
  /** When the token was issued, by the wall clock of this device. */
  readonly bornAtMs: number;
};

export type TabMessage =
  /** A tab that has a newer token sends it to `replyTo`. */
  | { readonly type: "ask"; readonly newerThan: number; readonly replyTo: string }
  | TokenMessage
  /** `sid` is absent where no token was ever held: tabs that hold one look whether it is theirs. */
  | { readonly type: "ended"; readonly sid: string | undefined }
  /** The service could not be reached. */
  | { readonly type: "failed"; readonly waitMs: number; readonly sentAtMs: number }
  /** Somebody has signed in. */
  | { readonly type: "began" };

/** On a server there are no other tabs, and an open channel would keep the process alive. */
export function openChannel(
  { document, BroadcastChannel }: Realm,
  name: string,
  receive: (message: TabMessage | null) => void,
): ChannelLike | undefined {
  const channel = document && BroadcastChannel && new BroadcastChannel(name);
  if (channel) channel.onmessage = ({ data }) => receive(data as TabMessage | null);
  return channel;
}

export function messageOf({ text, ageMs, dueMs, replacement }: HeldToken, realm: Realm): TokenMessage {
  return { type: "token", text, bornAtMs: realm.Date.now() - ageMs(), dueMs, replacement };
}

/** How long ago something was, by the wall clock, which the tabs share: a frozen tab gets its messages late. */
export const agoMs = (realm: Realm, atMs: number): number => Math.max(0, realm.Date.now() - atMs);

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
  const turn = async () => {
    if (!settled.aborted) await request();
  };
  for (let level = 0; level < LOCK_COUNT; level++) {
    const times = level < LOCK_COUNT - 1 ? 1 : LAST_WAIT + realm.Math.random();
    const wait = deadline(realm, LOCK_WAIT_MS * times, settled);
    try {
      await (realm.navigator as Required<NonNullable<Realm["navigator"]>>).locks.request(
        name + level,
        { signal: wait.signal },
        turn,
      );
      return;
    } catch {
      // Too long a wait, or no locks here. `request` itself never rejects.
    } finally {
      wait.abort();
    }
  }
  await turn();
}
