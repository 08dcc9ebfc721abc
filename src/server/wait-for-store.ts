import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "../observability/logger.ts";
import { type SessionStore, StoreRefused } from "../session/ports.ts";

/** How often a store that is not available yet is tried again, ms. */
const STORE_RETRY_MS = 200;

/** Resolves when the store can serve. @throws StoreRefused: waiting would not help */
export async function waitForStore(store: Pick<SessionStore, "ping">, log: Logger): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await store.ping();
    } catch (err) {
      if (err instanceof StoreRefused) throw err;
      if (attempt === 0) log.warn({ event: "store_awaited", err }, "waiting for the store");
      await sleep(STORE_RETRY_MS);
    }
  }
}
