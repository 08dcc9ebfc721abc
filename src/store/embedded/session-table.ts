/** Reads and ends sessions by id and by subject, for the methods of the store. */
import type { NewSession, Session, SessionId } from "../../session/model.ts";
import { firstState } from "../../session/rotation.ts";
import { type StoreMs, storeMs } from "../../session/time.ts";
import type { PagePosition } from "../page.ts";
import type { Candidate } from "../search.ts";
import { type FoundRow, newborn, type SessionRow, sessionOf, toRow } from "./rows.ts";
import type { Statements } from "./statements.ts";

export class SessionTable {
  readonly #sql: Statements;

  constructor(sql: Statements) {
    this.#sql = sql;
  }

  get(sid: SessionId): FoundRow | undefined {
    return this.#sql.session.get(sid) as FoundRow | undefined;
  }

  live(sid: SessionId, now: StoreMs): SessionRow | undefined {
    const row = this.get(sid);
    return row !== undefined && now < row.idle_expires_at && !row.ended ? row : undefined;
  }

  /** Returns whether the session is within its lifetimes, but has ended with others. */
  endedWithOthers(sid: SessionId, now: StoreMs): boolean {
    const row = this.get(sid);
    return row !== undefined && now < row.idle_expires_at && row.ended > 0;
  }

  /** Returns whether the session has ended with those of its subject, and is not marked and logged yet. */
  isEnding(sid: SessionId): boolean {
    return this.get(sid)?.ended === 2;
  }

  /** Returns the live sessions of a subject in order of creation; undefined if the subject has more than `most`. */
  few(subject: string, now: StoreMs, most: number): SessionId[] | undefined {
    const rows = this.#sql.ofSubject.all(subject, most + 1) as Pick<SessionRow, "sid" | "idle_expires_at">[];
    if (rows.length > most) return undefined;
    return rows.filter((row) => now < row.idle_expires_at).map(({ sid }) => sid);
  }

  /** Returns the sessions of a subject after a position, newest first. */
  page(subject: string, { createdAt, sid }: PagePosition, count: number, now: StoreMs): Candidate[] {
    return candidates(this.#sql.page.all(subject, createdAt, sid, count) as FoundRow[], now);
  }

  /** Returns the sessions of all subjects after a position, newest first. */
  byCreation({ createdAt, sid }: PagePosition, count: number, now: StoreMs): Candidate[] {
    return candidates(this.#sql.byCreation.all(createdAt, sid, count) as FoundRow[], now);
  }

  /** Returns the range of rows that a count reads. */
  rowRange(): { readonly first: number; readonly last: number } {
    const { first, last } = this.#sql.rowRange.get() ?? {};
    return { first: Number(first ?? 0), last: Number(last ?? -1) };
  }

  /** Counts the live sessions among some rows. */
  countRows(first: number, last: number, now: StoreMs): number {
    return Number(this.#sql.countRows.get(first, last, now)?.count);
  }

  /**
   * Inserts a session.
   *
   * @param createdAt must be later than the creation of every session that has ended with others. Otherwise the new one counts as ended
   */
  insert(session: NewSession, childNonce: string, createdAt: StoreMs): Session {
    const created = newborn(session, createdAt);
    this.#sql.created.run(created.createdAt);
    this.#sql.insert.run(toRow(created, firstState(childNonce)));
    return created;
  }

  /** Ends all sessions that were created before a time, or all that exist. Returns the time of creation up to which they ended. */
  endAll(createdBefore: StoreMs | undefined, now: StoreMs): StoreMs {
    const latest = Math.max(now, Number(this.#sql.newest.get()?.time));
    const until = storeMs(Math.max(0, Math.min(latest, (createdBefore ?? Number.POSITIVE_INFINITY) - 1)));
    this.#sql.endAll.run(until);
    return until;
  }
}

function candidates(rows: readonly FoundRow[], now: StoreMs): Candidate[] {
  return rows.map((row) => ({
    position: { createdAt: row.created_at, sid: row.sid },
    session: now < row.idle_expires_at && !row.ended ? sessionOf(row) : undefined,
  }));
}
