/** Events of sessions in the embedded store: a table beside the others. */
import {
  type EventsOf,
  MAX_ENDS_OF_ALL,
  MAX_EVENT_SESSIONS,
  MAX_EVENTS_PER_SESSION,
  type SessionEvent,
  type SessionEventLog,
} from "../../session/events.ts";
import { eventText, parseEvent } from "../event-text.ts";
import type { Statements } from "./statements.ts";
import type { Transactions } from "./transactions.ts";

/** The `sid` of the ends of all. */
const ALL = "*";

export class EmbeddedEvents implements SessionEventLog {
  readonly #sql: Statements;
  readonly #transactions: Transactions;

  constructor(sql: Statements, transactions: Transactions) {
    this.#sql = sql;
    this.#transactions = transactions;
  }

  async recordEvents(events: readonly SessionEvent[], retention: number): Promise<void> {
    this.#transactions.write("NORMAL", (now) => {
      for (const event of events) this.#record(event, now, now + retention);
    });
  }

  async events(of: EventsOf): Promise<readonly SessionEvent[]> {
    return this.#transactions.read((now) => {
      const sids = "sid" in of ? [of.sid] : this.#sidsOf(of.subject);
      const rows = [...sids, ALL].flatMap((sid) => this.#sql.eventsOf.all(sid, now) as { readonly text: string }[]);
      return rows.map(({ text }) => parseEvent(text));
    });
  }

  #record(event: SessionEvent, now: number, expiresAt: number): void {
    const { sid = ALL, type } = event;
    const count = Number(this.#sql.countEvents.get(sid)?.count);
    if (sid === ALL) this.#sql.trimEvents.run(sid, sid, MAX_ENDS_OF_ALL - 1);
    else if (count >= MAX_EVENTS_PER_SESSION && type !== "ended") return;
    const subject = event.subject ?? this.#sql.subjectOfEvents.get(sid)?.subject ?? null;
    this.#sql.recordEvent.run(sid, subject, expiresAt, eventText(event));
    this.#sql.sweepEvents.run(now);
  }

  #sidsOf(subject: string): string[] {
    const rows = this.#sql.eventSessions.all(subject, MAX_EVENT_SESSIONS) as { readonly sid: string }[];
    return rows.map(({ sid }) => sid);
  }
}
