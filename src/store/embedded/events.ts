/** Stores events of sessions and due records in the embedded store, each in tables of their own. */
import {
  type DueRecord,
  type DueRecords,
  dueKeyOf,
  type EventRecord,
  type EventsOf,
  MAX_ENDS_OF_ALL,
  MAX_EVENT_SESSIONS,
  MAX_EVENTS_PER_SESSION,
  type Origin,
  type SessionEvent,
  type SessionEventLog,
} from "../../session/events.ts";
import type { EndReason, NewSession, SessionId } from "../../session/model.ts";
import { later, type StoreMs } from "../../session/time.ts";
import { CREATED, type DueText, dueRecord, ENDED_ALL, noteOf } from "../due-text.ts";
import { eventText, parseEvent } from "../event-text.ts";
import type { Statements } from "./statements.ts";
import type { Transactions } from "./transactions.ts";

/** The `sid` of an event that is a logout of everyone. */
const ALL = "*";
/** How many due records are read at once. */
const MAX_DUE = 256;

export class EmbeddedEvents implements SessionEventLog {
  readonly #sql: Statements;
  readonly #transactions: Transactions;

  constructor(sql: Statements, transactions: Transactions) {
    this.#sql = sql;
    this.#transactions = transactions;
  }

  async recordEvents(records: readonly EventRecord[], retentionMs: number): Promise<readonly EventRecord[]> {
    this.#transactions.write("NORMAL", (now) => {
      for (const record of records) this.#record(record, now, retentionMs);
    });
    return [];
  }

  async events(of: EventsOf): Promise<readonly SessionEvent[]> {
    return this.#transactions.read((now) => {
      const sids = "sid" in of ? [of.sid] : this.#sidsOf(of.subject);
      const rows = [...sids, ALL].flatMap((sid) => this.#sql.eventsOf.all(sid, now) as { readonly text: string }[]);
      return rows.map(({ text }) => parseEvent(text));
    });
  }

  async dueRecords(): Promise<readonly DueRecords[]> {
    const { now, rows } = this.#transactions.read((now) => ({ now, rows: this.#sql.due.all(MAX_DUE) as DueText[] }));
    return [{ part: "file", now, records: rows.map(dueRecord) }];
  }

  async claimRecord({ key, since }: DueRecord): Promise<boolean> {
    return this.#transactions.write("NORMAL", (now) => this.#sql.claimDue.run(now, key, since).changes === 1);
  }

  /** Writes the due record of a created session. This and the next two functions run within the caller's transaction. */
  leaveCreated(session: NewSession, origin: Origin | undefined, now: StoreMs): void {
    this.#leave({ type: "created", sid: session.sid }, CREATED, noteOf(origin, session), session.subject, now);
  }

  leaveEnded(sid: SessionId, reason: EndReason, note: string, subject: string, now: StoreMs): void {
    this.#leave({ type: "ended", sid }, reason, note, subject, now);
  }

  leaveEndOfAll(revokedUntil: StoreMs, origin: Origin | undefined, now: StoreMs): void {
    this.#leave({ type: "all_ended", revokedUntil }, ENDED_ALL, noteOf(origin), "", now);
  }

  #leave(event: Omit<SessionEvent<StoreMs>, "time">, what: string, note: string, subject: string, now: StoreMs): void {
    if (note !== "") this.#sql.leaveDue.run(dueKeyOf(event) ?? "", now, now, what, note, subject);
  }

  #record(record: EventRecord, now: StoreMs, retentionMs: number): void {
    const { dueKey } = record;
    if (dueKey !== undefined && this.#sql.takeDue.run(dueKey).changes === 0) return; // The event is recorded already.
    if (retentionMs > 0) this.#append(record, now, later(now, retentionMs));
  }

  #append(record: EventRecord, now: StoreMs, expiresAt: StoreMs): void {
    const { sid = ALL, type, subject: known } = record.event;
    const count = Number(this.#sql.countEvents.get(sid)?.count);
    if (sid === ALL) this.#sql.trimEvents.run(sid, sid, MAX_ENDS_OF_ALL - 1);
    else if (count >= MAX_EVENTS_PER_SESSION && type !== "ended") return;
    const subject = known ?? this.#sql.subjectOfEvents.get(sid)?.subject ?? null;
    this.#sql.recordEvent.run({ sid, subject, expires_at: expiresAt, text: eventText(record) });
    this.#sql.sweepEvents.run(now);
  }

  #sidsOf(subject: string): string[] {
    const rows = this.#sql.eventSessions.all(subject, MAX_EVENT_SESSIONS) as { readonly sid: string }[];
    return rows.map(({ sid }) => sid);
  }
}
