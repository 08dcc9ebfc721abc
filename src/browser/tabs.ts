/**
 * Coordinates the tabs of one origin. This only saves requests, because the server's rotation tolerates any number of tabs. So every wait
 * is bounded, and after it the tab acts alone.
 */
import type { TabMessage } from "./messages.ts";
import { type ChannelLike, deadline, type Realm } from "./realm.ts";

/**
 * How long tabs wait for each of three locks, in ms. A frozen tab may hold a lock indefinitely. Tabs that have waited too long for one lock
 * then all request the next lock, so that still only one of them sends the request. A hundred tabs on a busy machine may wait for seconds
 * although no tab is frozen. For the last lock, tabs wait longer than its holder needs, each for a different time.
 */
const LOCK_WAITS_MS = [5_000, 6_000, 20_000];

/**
 * Opens a channel between the tabs of one origin. Returns undefined if the browser refuses channels, as Firefox does if all cookies are
 * blocked, and on a server, where an open channel would keep the process running.
 */
export function openChannel(
  { document, BroadcastChannel }: Realm,
  name: string,
  receive: (message: TabMessage | null) => void,
): ChannelLike | undefined {
  try {
    // Without a document or channels, this fails as well.
    const channel = document && new (BroadcastChannel as NonNullable<Realm["BroadcastChannel"]>)(name);
    (channel as ChannelLike).onmessage = ({ data }: { readonly data: TabMessage | null }) => receive(data);
    return channel;
  } catch {}
  return undefined;
}

/**
 * Runs `request` when no other tab runs its own request, or after the longest wait for that.
 * @param settled if it is aborted during the wait, `request` is not run
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
      // The wait was too long, or the browser has no locks. `request` itself never rejects.
    } finally {
      wait.abort();
    }
  }
  return turn();
}
