/**
 * Coordinates the tabs of one origin. The coordination only saves requests, since the server's rotation tolerates any number of
 * tabs. So every wait here ends by itself, and then the tab acts alone.
 */
import { type ChannelLike, deadline, type Realm } from "./realm.ts";
import type { HeldToken, ReceivedToken } from "./token.ts";

/**
 * How long tabs wait for one lock after the other, ms. A frozen tab may hold a lock indefinitely. Tabs that have waited for it in vain
 * meet at the next lock, so that still only one of them makes the request. A hundred tabs on a busy machine take seconds and are not
 * frozen. Tabs wait for the last lock longer than its holder needs, and not all equally long.
 */
const LOCK_WAITS_MS = [5_000, 6_000, 20_000];

export type TokenMessage = ReceivedToken & { readonly type: "token" };

export type TabMessage =
  /** A tab that has a newer token sends it to `replyTo`. */
  | { readonly type: "ask"; readonly newerThan: number; readonly replyTo: string }
  | TokenMessage
  /** `sid` is absent where no token was ever held: tabs that hold one look whether it is theirs. */
  | { readonly type: "ended"; readonly sid: string | undefined }
  /** The service could not be reached. */
  | { readonly type: "failed"; readonly waitMs: number; readonly atMs: number }
  /** Somebody has signed in. */
  | { readonly type: "began" };

export type Receivers = {
  readonly [T in TabMessage["type"]]: (message: Extract<TabMessage, { readonly type: T }>) => void;
};

/** A server has no other tabs, and an open channel would keep its process alive. */
export function openChannel(
  { document, BroadcastChannel }: Realm,
  name: string,
  receive: (message: TabMessage | null) => void,
): ChannelLike | undefined {
  const channel = document && BroadcastChannel && new BroadcastChannel(name);
  if (channel) channel.onmessage = ({ data }: { readonly data: TabMessage | null }) => receive(data);
  return channel;
}

/** Returns a message with a token and when its life began, by the wall clock, which may have been set since. Functions cannot be sent. */
export function messageOf({ leftMs, ...token }: HeldToken, realm: Realm): TokenMessage {
  return { ...token, type: "token", atMs: realm.Date.now() - token.lifeMs + leftMs() };
}

/**
 * Runs `request` while no other tab runs its own, unless that would take longer than a bounded time.
 *
 * @param settled aborted when the request is no longer needed, so that it is not made
 */
export async function exclusively<T>(
  realm: Realm,
  name: string,
  settled: AbortSignal,
  request: () => Promise<T>,
): Promise<T | undefined> {
  const turn = async () => (settled.aborted ? undefined : request());
  for (const waitMs of LOCK_WAITS_MS) {
    const wait = deadline(realm, waitMs * (1 + realm.Math.random() / 6), settled);
    try {
      return await (realm.navigator as Required<NonNullable<Realm["navigator"]>>).locks.request(
        name + waitMs,
        { signal: wait.signal },
        turn,
      );
    } catch {
      // Too long a wait, or no locks here. `request` itself never rejects.
    } finally {
      wait.abort();
    }
  }
  return turn();
}
