/** What counts once: until a time, an id makes no second session (`reservedMs`), and what a provider has said is noted (`note`). */
import type { DatabaseSync } from "node:sqlite";
import type { StoreMs } from "../../session/time.ts";
import { SWEEP } from "./schema.ts";

/** The table, which keeps its first name, is not part of the versioned schema: it is created if it does not exist. */
export const RESERVATIONS_TABLE = `
  CREATE TABLE IF NOT EXISTS claims (sid TEXT PRIMARY KEY, claimed_until INTEGER NOT NULL);
  CREATE INDEX IF NOT EXISTS claims_by_expiry ON claims (claimed_until);`;

export type Reservations = {
  /** @param name an id of a session, or another text that no session has as its id */
  has(name: string, now: StoreMs): boolean;
  add(name: string, until: StoreMs, now: StoreMs): void;
};

export function createReservations(db: DatabaseSync): Reservations {
  db.exec(RESERVATIONS_TABLE);
  const one = db.prepare("SELECT 1 FROM claims WHERE sid = ? AND claimed_until > ?");
  const insert = db.prepare("INSERT OR REPLACE INTO claims (sid, claimed_until) VALUES (?, ?)");
  const sweep = db.prepare(
    `DELETE FROM claims WHERE sid IN (SELECT sid FROM claims WHERE claimed_until <= ? ORDER BY claimed_until LIMIT ${SWEEP})`,
  );
  return {
    has: (name, now) => one.get(name, now) !== undefined,
    add(name, until, now) {
      sweep.run(now);
      insert.run(name, until);
    },
  };
}
