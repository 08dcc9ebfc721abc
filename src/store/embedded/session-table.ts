/** Sessions by id and by subject, as the verbs ask for them. */
import type { NewSession, Session, SessionId } from "../../session/model.ts";
import { firstState } from "../../session/rotation.ts";
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

  live(sid: SessionId, now: number): SessionRow | undefined {
    const row = this.get(sid);
    return row !== undefined && now < row.idle_expires_at && !row.ended ? row : undefined;
  }

  /** Whether it is within its lifetimes, and ended with all others. */
  endedWithAll(sid: SessionId, now: number): boolean {
    const row = this.get(sid);
    return row !== undefined && now < row.idle_expires_at && row.ended === 1;
  }

  /** In order of creation. */
  liveOf(subject: string, now: number): SessionId[] {
    return (this.#sql.ofSubject.all(subject, now) as { sid: SessionId }[]).map(({ sid }) => sid);
  }

  /** Of a subject, newest first, after a position. @param most -1: all */
  page(subject: string, now: number, { createdAt, sid }: PagePosition, most: number): Session[] {
    return (this.#sql.page.all(subject, now, createdAt, sid, most) as SessionRow[]).map(sessionOf);
  }

  /** Of all subjects, newest first, after a position. */
  byCreation({ createdAt, sid }: PagePosition, count: number, now: number): Candidate[] {
    const rows = this.#sql.byCreation.all(createdAt, sid, count) as SessionRow[];
    return rows.map((row) => ({
      position: { createdAt: row.created_at, sid: row.sid },
      session: now < row.idle_expires_at ? sessionOf(row) : undefined,
    }));
  }

  /** Rows that a count looks at, from and to. */
  rowRange(): { readonly first: number; readonly last: number } {
    const { first, last } = this.#sql.rowRange.get() ?? {};
    return { first: Number(first ?? 0), last: Number(last ?? -1) };
  }

  /** The live ones among some rows. */
  countRows(first: number, last: number, now: number): number {
    return Number(this.#sql.countRows.get(first, last, now)?.count);
  }

  /** Created after all that have ended together, whatever the clock shows. */
  insert(session: NewSession, childNonce: string, now: number): Session {
    const endedUntil = Number(this.#sql.endedUntil.get()?.time);
    const created = newborn(session, Math.max(now, endedUntil + 1));
    this.#sql.created.run(created.createdAt);
    this.#sql.insert.run(toRow(created, firstState(childNonce)));
    this.#sql.sweepSessions.run(now);
    return created;
  }

  /** Ends all that were created before a time, or that there are; the time of creation up to which they ended. */
  endAll(createdBefore: number | undefined, now: number): number {
    const latest = Math.max(now, Number(this.#sql.newest.get()?.time));
    const until = Math.max(0, Math.min(latest, (createdBefore ?? Number.POSITIVE_INFINITY) - 1));
    this.#sql.endAll.run(until);
    return until;
  }
}
