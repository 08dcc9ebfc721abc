import type { NewSession, Session, SessionId } from "../../session/model.ts";
import { firstState } from "../../session/rotation.ts";
import type { StoreMs } from "../../session/time.ts";
import type { PagePosition } from "../page.ts";
import type { Candidate } from "../search.ts";
import { type FoundRow, newborn, type SessionRow, sessionOf, toRow } from "./rows.ts";
import type { Statements } from "./statements.ts";

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

    /**
     * Inserts a session.
     *
     * @param createdAt must be later than the last logout of the subject or of everyone. Otherwise the new session counts as ended
     */
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
