/** The revocation log of the embedded store, which holds the markers of ended sessions too. */
import type { EndReason, Revocation, SessionId } from "../../session/model.ts";
import { InvalidCursor, type RevocationBatch } from "../../session/ports.ts";
import { later, latest, type StoreMs, storeMs } from "../../session/time.ts";
import { type LogRow, revocationOf } from "./rows.ts";
import type { Statements } from "./statements.ts";

/** The `sid` of an entry that stands for all sessions; its `revoked_at` is the time of creation up to which they ended. */
const ALL = "*";

export class RevocationLog {
  readonly #sql: Statements;
  readonly #id: string;
  readonly #markerLifeMs: number;

  /** @param markerLifeMs how long an ended session is remembered, ms */
  constructor(sql: Statements, markerLifeMs: number) {
    this.#sql = sql;
    this.#id = String(sql.storeId.get()?.id);
    this.#markerLifeMs = markerLifeMs;
  }

  append(sid: SessionId, reason: EndReason, now: StoreMs): Revocation {
    const expiresAt = later(now, this.#markerLifeMs);
    this.#sql.append.run(sid, now, expiresAt, reason);
    this.#sql.sweepLog.run(now);
    return { sid, revokedAt: now, expiresAt, reason };
  }

  appendAll(createdUntil: StoreMs, now: StoreMs): void {
    this.#sql.append.run(ALL, createdUntil, now + this.#markerLifeMs, "revoked_all");
  }

  has(sid: SessionId, now: StoreMs): boolean {
    return this.#sql.marker.get(sid, now) !== undefined;
  }

  /** @throws InvalidCursor */
  readAfter(cursor: string | undefined): (now: StoreMs) => RevocationBatch {
    const after = cursor === undefined ? 0 : this.#parseCursor(cursor);
    return (now) => {
      const rows = this.#sql.after.all(after, now) as LogRow[];
      const revocations: Revocation[] = [];
      let revokedUntil = storeMs(0);
      for (const row of rows) {
        if ((row.sid as string) === ALL) revokedUntil = latest(revokedUntil, row.revoked_at);
        else revocations.push(revocationOf(row));
      }
      return { revocations, revokedUntil, cursor: `e.${this.#id}.${rows.at(-1)?.seq ?? after}`, now };
    };
  }

  /** A cursor of another file (this one was replaced) counts as none: everything that the log holds is read again. */
  #parseCursor(cursor: string): number {
    const [, id, seq] = /^e\.([0-9a-f]{16})\.(\d{1,15})$/.exec(cursor) ?? [];
    if (id === undefined) throw new InvalidCursor("not a cursor of the embedded store");
    return id === this.#id ? Number(seq) : 0;
  }
}
