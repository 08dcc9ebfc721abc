/** The claims of session ids: until a time, no second session is created with the id (`createOnce`). */
import type { DatabaseSync } from "node:sqlite";
import type { SessionId } from "../../session/model.ts";
import type { StoreMs } from "../../session/time.ts";
import { SWEEP } from "./schema.ts";
import type { Transactions } from "./transactions.ts";

/** The table is not part of the versioned schema. It is created when it is first needed, so that earlier versions open a file without it. */
export const CLAIMS_TABLE = `
  CREATE TABLE IF NOT EXISTS claims (sid TEXT PRIMARY KEY, claimed_until INTEGER NOT NULL);
  CREATE INDEX IF NOT EXISTS claims_by_expiry ON claims (claimed_until);`;

export type Claims = {
  has(sid: SessionId, now: StoreMs): boolean;
  add(sid: SessionId, until: StoreMs, now: StoreMs): void;
};

/** Returns a function that opens the table, outside of other transactions. */
export function createClaims(db: DatabaseSync, { write }: Pick<Transactions, "write">): () => Claims {
  let claims: Claims | undefined;
  return () => {
    if (claims === undefined) {
      write("NORMAL", () => db.exec(CLAIMS_TABLE));
      claims = prepare(db);
    }
    return claims;
  };
}

function prepare(db: DatabaseSync): Claims {
  const one = db.prepare("SELECT 1 FROM claims WHERE sid = ? AND claimed_until > ?");
  const insert = db.prepare("INSERT OR REPLACE INTO claims (sid, claimed_until) VALUES (?, ?)");
  const sweep = db.prepare(
    `DELETE FROM claims WHERE sid IN (SELECT sid FROM claims WHERE claimed_until <= ? ORDER BY claimed_until LIMIT ${SWEEP})`,
  );
  return {
    has: (sid, now) => one.get(sid, now) !== undefined,
    add(sid, until, now) {
      sweep.run(now);
      insert.run(sid, until);
    },
  };
}
