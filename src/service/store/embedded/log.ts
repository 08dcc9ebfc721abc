/** The revocation log of the embedded store. A session with an entry in the log counts as ended. */
import type { EndReason, Revocation, SessionId, StaleMark } from "../../session/model.ts";
import { InvalidCursor, type RevocationBatch } from "../../session/ports.ts";
import { later, type StoreMs, storeMs } from "../../session/time.ts";
import { type LogRow, revocationOf } from "./rows.ts";
import type { Statements } from "./statements.ts";

/** The column `sid` of a logout of everyone. In its row, `revoked_at` is the time of creation up to which sessions have ended. */
const ALL = "*";

/** Precedes the session's id in the column `sid` of a mark. Its column `reason` is the version below which access tokens are stale. */
const MARK = "~";

const isMark = (sid: string) => sid.startsWith(MARK);

export type RevocationLog = ReturnType<typeof createLog>;

function staleMarkOf({ sid, revoked_at, expires_at, reason }: LogRow): StaleMark {
  const named = sid.slice(MARK.length) as SessionId;
  return { sid: named, markedAt: revoked_at, expiresAt: expires_at, minVersion: Number(reason) };
}

/** @param markerLifeMs how long an ended session is remembered, in ms */
export function createLog(sql: Statements, markerLifeMs: number) {
  const ownId = String(sql.storeId.get()?.id);

  /** Parses a cursor. A cursor of a database file that this file has replaced counts as absent: all entries are read again. */
  const parseCursor = (cursor: string): number => {
    const [, id, seq] = /^e\.([0-9a-f]{16})\.(\d{1,15})$/.exec(cursor) ?? [];
    if (id === undefined) throw new InvalidCursor("not a cursor of the embedded store");
    return id === ownId ? Number(seq) : 0;
  };

  return {
    append(sid: SessionId, reason: EndReason, now: StoreMs): Revocation {
      const expiresAt = later(now, markerLifeMs);
      sql.append.run(sid, now, expiresAt, reason);
      sql.sweepLog.run(now);
      return { sid, revokedAt: now, expiresAt, reason };
    },

    appendMark(sid: SessionId, minVersion: number, now: StoreMs): StaleMark {
      const expiresAt = later(now, markerLifeMs);
      sql.append.run(MARK + sid, now, expiresAt, String(minVersion));
      sql.sweepLog.run(now);
      return { sid, markedAt: now, expiresAt, minVersion };
    },

    appendAll(createdUntil: StoreMs, now: StoreMs): void {
      sql.append.run(ALL, createdUntil, now + markerLifeMs, "revoked_all");
    },

    /** Returns whether the log still has an entry for the session with a reason other than expiry. */
    has(sid: SessionId, now: StoreMs): boolean {
      return sql.marker.get(sid, now) !== undefined;
    },

    /** Returns a function that reads the entries after a cursor within a transaction. @throws InvalidCursor */
    readAfter(cursor: string | undefined): (now: StoreMs) => RevocationBatch {
      const after = cursor === undefined ? 0 : parseCursor(cursor);
      return (now) => {
        const rows = sql.after.all(after, now) as LogRow[];
        const revocations = rows.filter(({ sid }) => (sid as string) !== ALL && !isMark(sid)).map(revocationOf);
        const staleMarks = rows.filter(({ sid }) => isMark(sid)).map(staleMarkOf);
        // The log drops the entry of a logout of everyone when all access tokens from before the logout have expired. The table `store`
        // keeps the time of the logout.
        const revokedUntil = storeMs(Number(sql.endedUntil.get()?.time));
        return { revocations, staleMarks, revokedUntil, cursor: `e.${ownId}.${rows.at(-1)?.seq ?? after}`, now };
      };
    },
  };
}
