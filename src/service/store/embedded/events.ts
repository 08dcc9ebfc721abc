/** Stores the history of sessions (events) in one table, and the events that are still to be recorded (due records) in another. */
import {
  dueKeyOf,
  type EventRecord,
  MAX_ENDS_OF_ALL,
  MAX_EVENT_SESSIONS,
  MAX_EVENTS_PER_SESSION,
  type Origin,
  type SessionEvent,
  type SessionEventLog,
} from "../../session/events/events.ts";
import type { EndReason, NewSession, SessionId } from "../../session/model.ts";
import { later, type StoreMs } from "../../session/time.ts";
import { CREATED, type DueText, dueRecord, ENDED_ALL, eventText, noteOf, parseEvent } from "../event-text.ts";
import type { SessionRows } from "./rows.ts";
import type { Statements } from "./statements.ts";
import type { Transactions } from "./transactions.ts";

/** The value of the column `sid` for a logout of everyone. */
const ALL = "*";
const MAX_DUE = 256;

export type DueSteps = ReturnType<typeof createDueSteps>;

/** Returns functions that write a due record: what is still to be recorded about a session. They run within the caller's transaction. */
export function createDueSteps(sql: Statements) {
  const leave = (
    event: Omit<SessionEvent<StoreMs>, "time">,
    what: string,
    note: string,
    subject: string,
    now: StoreMs,
  ) => {
    if (note !== "") sql.leaveDue.run(dueKeyOf(event) ?? "", now, now, what, note, subject);
  };
  return {
    leaveCreated: (session: NewSession, origin: Origin | undefined, now: StoreMs, newDevice: boolean) =>
      leave({ type: "created", sid: session.sid }, CREATED, noteOf(origin, session, newDevice), session.subject, now),
    leaveEnded: (sid: SessionId, reason: EndReason, note: string, subject: string, now: StoreMs) =>
      leave({ type: "ended", sid }, reason, note, subject, now),
    leaveEndOfAll: (revokedUntil: StoreMs, origin: Origin | undefined, now: StoreMs) =>
      leave({ type: "all_ended", revokedUntil }, ENDED_ALL, noteOf(origin), "", now),
  };
}

type Deps = Transactions & { readonly sql: Statements; readonly sessions: Pick<SessionRows, "live"> };

export function createEvents({ sql, sessions, read, write }: Deps): SessionEventLog {
  return {
    async recordEvents(records, retentionMs) {
      write("NORMAL", (now) => {
        for (const record of records) {
          const { dueKey } = record;
          if (dueKey !== undefined && sql.takeDue.run(dueKey).changes === 0) continue; // Another call has already recorded the event.
          // The events of a session that is not live, and of its subject, were removed (forget.ts).
          const { sid = ALL } = record.event;
          const isForgotten =
            dueKey === undefined && countOf(sql, sid) === 0 && sessions.live(sid as SessionId, now) === undefined;
          if (retentionMs > 0 && !isForgotten) append(sql, sessions, record, now, retentionMs);
        }
      });
      return [];
    },

    async events(of) {
      return read((now) => {
        const sids = "sid" in of ? [of.sid] : sidsOf(sql, of.subject);
        const rows = [...sids, ALL].flatMap((sid) => sql.eventsOf.all(sid, now) as { readonly text: string }[]);
        return rows.map(({ text }) => parseEvent(text));
      });
    },

    async eventSessions(subject) {
      const rows = read(() => sql.eventSessionsOf.all(subject, "", -1)) as { readonly sid: SessionId }[];
      return rows.map(({ sid }) => sid);
    },

    async dueRecords() {
      const { now, rows } = read((now) => ({ now, rows: sql.due.all(MAX_DUE) as DueText[] }));
      return [{ part: "file", now, records: rows.map(dueRecord) }];
    },

    async claimRecord({ key, since }) {
      return write("NORMAL", (now) => sql.claimDue.run(now, key, since).changes === 1);
    },
  };
}

/** The event of a creation is kept for as long as the session, and all its events for `retentionMs` after its end. */
function append(
  sql: Statements,
  sessions: Pick<SessionRows, "live">,
  record: EventRecord,
  now: StoreMs,
  retentionMs: number,
): void {
  const { sid = ALL, type, subject: known } = record.event;
  const count = countOf(sql, sid);
  if (sid === ALL) sql.trimEvents.run(sid, sid, MAX_ENDS_OF_ALL - 1);
  else if (count >= MAX_EVENTS_PER_SESSION && type !== "ended") return;
  const created = type === "created" ? sessions.live(sid as SessionId, now) : undefined;
  const expiresAt = later(created?.absolute_expires_at ?? now, retentionMs);
  if (type === "ended") sql.keepEvents.run(expiresAt, sid);
  const subject = known ?? sql.subjectOfEvents.get(sid)?.subject ?? null;
  sql.recordEvent.run({ sid, subject, expires_at: expiresAt, text: eventText(record) });
  sql.sweepEvents.run(now);
}

const countOf = (sql: Statements, sid: string) => Number(sql.countEvents.get(sid)?.count);

function sidsOf(sql: Statements, subject: string): string[] {
  const rows = sql.eventSessions.all(subject, MAX_EVENT_SESSIONS) as { readonly sid: string }[];
  return rows.map(({ sid }) => sid);
}
