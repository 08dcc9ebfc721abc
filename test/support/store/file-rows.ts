/** What holds for the rows of an embedded store at any time, whatever has happened. */
import { DatabaseSync } from "node:sqlite";
import { expect } from "vitest";

/** Each selects the rows for which something does not hold. */
const FAULTS: Readonly<Record<string, string>> = {
  "is examined after its expiry": "SELECT sid FROM sessions WHERE examined_at > idle_expires_at",
  "lives longer than its absolute lifetime": "SELECT sid FROM sessions WHERE idle_expires_at > absolute_expires_at",
  "is newer than the newest": "SELECT sid FROM sessions WHERE created_at > (SELECT newest FROM store)",
  "waits for a session that is gone":
    "SELECT sid FROM sessions WHERE actor > '!' AND actor NOT IN (SELECT sid FROM sessions)",
};

export function expectSoundFile(path: string): void {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    for (const [fault, sql] of Object.entries(FAULTS)) expect([fault, db.prepare(sql).all()]).toEqual([fault, []]);
  } finally {
    db.close();
  }
}
