import { existsSync } from "node:fs";
import type { Clock } from "../../session/ports.ts";
import type { WallClock } from "../../session/time.ts";
import { createStoreClock } from "./clock.ts";
import { openDatabase, whenUnlocked } from "./schema.ts";
import { guarded } from "./transactions.ts";

/**
 * Returns whether the file exists and has sessions that are live by the store's own time. It never creates the file.
 *
 * @throws StoreUnavailable if the file is not a readable database
 */
export function holdsSessions(path: string, clock: WallClock, steady?: Clock): boolean {
  if (!existsSync(path)) return false;
  return guarded(() => {
    const db = whenUnlocked(() => openDatabase(path, (opened) => opened));
    try {
      const now = createStoreClock(db, clock, steady).now();
      return db.prepare("SELECT 1 FROM sessions WHERE idle_expires_at > ? LIMIT 1").get(now) !== undefined;
    } finally {
      db.close();
    }
  });
}
