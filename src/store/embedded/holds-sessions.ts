import { existsSync } from "node:fs";
import { guarded } from "./failure.ts";
import { openDatabase, whenUnlocked } from "./schema.ts";

/** Whether the file is there and has live sessions. Never makes one. @throws what SQLite says of a file that is none */
export function holdsSessions(path: string, now: number): boolean {
  if (!existsSync(path)) return false;
  return guarded(() => {
    const db = whenUnlocked(() => openDatabase(path, (opened) => opened));
    try {
      return db.prepare("SELECT 1 FROM sessions WHERE idle_expires_at > ? LIMIT 1").get(now) !== undefined;
    } finally {
      db.close();
    }
  });
}
