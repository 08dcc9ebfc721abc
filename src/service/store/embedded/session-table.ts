import { setImmediate as nextTurn } from "node:timers/promises";
import type { NewSession, Session, SessionId } from "../../session/model.ts";
import type { SessionStore } from "../../session/ports.ts";
import { firstState } from "../../session/rotation/rotation.ts";
import type { StoreMs } from "../../session/time.ts";
import { type Candidate, type PagePosition, search } from "../search.ts";
import { type FoundRow, newborn, type SessionRow, sessionOf, toRow } from "./rows.ts";
import type { Statements } from "./statements.ts";
import type { Transactions } from "./transactions.ts";

export type SessionTable = ReturnType<typeof createSessionTable>;

export function createSessionTable(sql: Statements) {
  const get = (sid: SessionId) => sql.session.get(sid) as FoundRow | undefined;
  return {
    get,

    live(sid: SessionId, now: StoreMs): SessionRow | undefined {
      const row = get(sid);
      return row !== undefined && now < row.idle_expires_at && !row.ended ? row : undefined;
    },

    /** Returns whether the session has not expired, but has ended in a logout of its subject or of everyone. */
    endedWithOthers(sid: SessionId, now: StoreMs): boolean {
      const row = get(sid);
      return row !== undefined && now < row.idle_expires_at && row.ended > 0;
    },

    /** Returns the live sessions of a subject in order of creation; undefined if the subject has more than `most`. */
    few(subject: string, now: StoreMs, most: number): SessionId[] | undefined {
      const rows = sql.ofSubject.all(subject, most + 1) as Pick<SessionRow, "sid" | "idle_expires_at">[];
      if (rows.length > most) return undefined;
      return rows.filter((row) => now < row.idle_expires_at).map(({ sid }) => sid);
    },

    /** Returns the sessions of a subject after a position, newest first. */
    page(subject: string, { createdAt, sid }: PagePosition, count: number, now: StoreMs): Candidate[] {
      return candidates(sql.page.all(subject, createdAt, sid, count) as FoundRow[], now);
    },

    /** Returns the sessions of all subjects after a position, newest first. */
    byCreation({ createdAt, sid }: PagePosition, count: number, now: StoreMs): Candidate[] {
      return candidates(sql.byCreation.all(createdAt, sid, count) as FoundRow[], now);
    },

    /** Inserts a session. It counts as ended unless `createdAt` is later than the last logout of its subject and of everyone. */
    insert(session: NewSession, childNonce: string, createdAt: StoreMs): Session {
      const created = newborn(session, createdAt);
      sql.created.run(created.createdAt);
      sql.insert.run(toRow(created, firstState(childNonce)));
      return created;
    },
  };
}

function candidates(rows: readonly FoundRow[], now: StoreMs): Candidate[] {
  return rows.map((row) => ({
    position: { createdAt: row.created_at, sid: row.sid },
    session: now < row.idle_expires_at && !row.ended ? sessionOf(row) : undefined,
  }));
}

/** How many rows are counted in one turn of the event loop: some 0.1 ms. */
const ROWS_PER_COUNT = 250;

export function createLists(
  sql: Statements,
  { read }: Transactions,
  sessions: SessionTable,
): Pick<SessionStore, "list" | "listAll" | "count"> {
  return {
    list: (subject, ...page) =>
      search(async (after, count) => read((now) => sessions.page(subject, after, count, now)), ...page),
    listAll: (...page) =>
      search(async (after, count) => read((now) => sessions.byCreation(after, count, now)), ...page),

    /** Counts all live sessions, in many turns of the event loop so that other work is not delayed. */
    async count() {
      const { first, last } = read(() => sql.rowRange.get()) ?? {};
      let count = 0;
      for (let at = Number(first ?? 0); at <= Number(last ?? -1); at += ROWS_PER_COUNT) {
        count += Number(read((now) => sql.countRows.get(at, at + ROWS_PER_COUNT - 1, now))?.count);
        await nextTurn();
      }
      return count;
    },
  };
}
