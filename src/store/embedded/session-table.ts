/** Reads and ends sessions by id and by subject, for the verbs of the store. */
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

  /** Whether it is within its lifetimes, and ended with others. */
  endedWithOthers(sid: SessionId, now: StoreMs): boolean {
    const row = this.get(sid);
    return row !== undefined && now < row.idle_expires_at && row.ended > 0;
  }

  /** Whether it ended with those of its subject, and what that leaves to be done is not done for it yet. */
  isEnding(sid: SessionId): boolean {
    return this.get(sid)?.ended === 2;
  }

  /** The live ones of a subject, in order of creation; undefined if it has more than `most`. */
  few(subject: string, now: StoreMs, most: number): SessionId[] | undefined {
    const rows = this.#sql.ofSubject.all(subject, most + 1) as Pick<SessionRow, "sid" | "idle_expires_at">[];
    if (rows.length > most) return undefined;
    return rows.filter((row) => now < row.idle_expires_at).map(({ sid }) => sid);
  }

  /** The sessions of a subject, newest first, after a position. */
  page(subject: string, { createdAt, sid }: PagePosition, count: number, now: StoreMs): Candidate[] {
    return candidates(this.#sql.page.all(subject, createdAt, sid, count) as FoundRow[], now);
  }

  /** The sessions of all subjects, newest first, after a position. */
  byCreation({ createdAt, sid }: PagePosition, count: number, now: StoreMs): Candidate[] {
    return candidates(this.#sql.byCreation.all(createdAt, sid, count) as FoundRow[], now);
  }

  /** Rows that a count looks at, from and to. */
  rowRange(): { readonly first: number; readonly last: number } {
    const { first, last } = this.#sql.rowRange.get() ?? {};
    return { first: Number(first ?? 0), last: Number(last ?? -1) };
  }

  /** The live ones among some rows. */
  countRows(first: number, last: number, now: StoreMs): number {
    return Number(this.#sql.countRows.get(first, last, now)?.count);
  }

  /** @param createdAt after all that have ended together, whatever the clock shows */
  insert(session: NewSession, childNonce: string, createdAt: StoreMs): Session {
    const created = newborn(session, createdAt);
    this.#sql.created.run(created.createdAt);
    this.#sql.insert.run(toRow(created, firstState(childNonce)));
    return created;
  }

  /** Ends all that were created before a time, or that there are; the time of creation up to which they ended. */
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
