/**
 * The history of sessions, which the store keeps for a bounded time so that support can see why a session ended. Refreshes are not part
 * of it. Every creation and every ending is recorded exactly once, even if the response to its caller is lost.
 *
 * The step that creates or ends a session also writes a *due record*: what is to be recorded, and which request caused it. As soon as the
 * store has replied, the instance that ran the step writes the audit line and then the event. Writing the event deletes the due record in
 * the same step; without its due record, an event is not written.
 *
 * A due record stays if the reply was lost, the event could not be written or the instance has died. Then exactly one instance claims it,
 * and writes both the line and the event (record-events.ts).
 */
import type { Correlation } from "../audit.ts";
import type { ClientData, EndReason, SessionId } from "../model.ts";
import type { StoreMs, WallMs } from "../time.ts";

/** An event as it is kept and returned: its times are the wall clock's. In a due record the times are the store's. */
export type SessionEvent<Time extends StoreMs | WallMs = WallMs> = {
  /** When the event happened: by the clock of the instance that recorded it at once, or else when the store ran the operation. */
  readonly time: Time;
  readonly type:
    | "created"
    | "ended"
    | "elevated"
    | "updated"
    | "all_ended"
    | "device_bound"
    | "device_unbound"
    | "new_device";
  /** Absent for a logout of everyone. */
  readonly sid?: SessionId;
  /** Absent if the subject is not known. */
  readonly subject?: string;
  /** Who used the session in place of its subject, or caused the event in the subject's name. */
  readonly actor?: string;
  readonly reason?: EndReason;
  /** For a logout of everyone: sessions that were created at this time or before have ended. */
  readonly revokedUntil?: Time;
  /** The network address of the request that caused the event. */
  readonly address?: string;
  /** The name of the admin API credential that was used. */
  readonly admin?: string;
  /** The device data that the session was created with. */
  readonly client?: ClientData;
  readonly clientId?: string;
  /** Present if the session was created with a user agent that no live session of its subject had. `shownEvents` makes an event of it. */
  readonly newDevice?: true;
};

/** Returns events as they are listed. That a device is new is kept with the creation, so that it is recorded exactly once, too. */
export function shownEvents(events: readonly SessionEvent[]): readonly SessionEvent[] {
  return events.flatMap((event) => (event.newDevice ? [event, { ...event, type: "new_device" as const }] : [event]));
}

/** Selects events: those of a session, or those of a subject's most recent sessions. */
export type EventsOf = { readonly sid: SessionId } | { readonly subject: string };

/** How many events of one session are kept. After that many, only the end of the session is added. */
export const MAX_EVENTS_PER_SESSION = 32;
/** How many sessions are found when events are selected by subject: its most recent sessions. */
export const MAX_EVENT_SESSIONS = 64;
/** How many logouts of everyone are kept. */
export const MAX_ENDS_OF_ALL = 16;

/** Describes the request that caused an operation. */
export type Origin = Partial<Correlation> & {
  readonly address?: string;
  readonly admin?: string;
  /** The subject of the session, if the caller has proven it. The ending is then recorded even if the store has lost the session. */
  readonly subject?: string;
  /** Who acts for the subject. */
  readonly actor?: string;
};

/**
 * The unique name of a due record (the note that an event is still to be recorded): a session is created and ends only once, and a logout
 * of everyone is named by the time of creation up to which it ended sessions.
 */
type DueKey = string;

/** Returns the name of the due record that belongs to an event, or undefined for events that have none. */
export function dueKeyOf({ type, sid, revokedUntil }: Omit<SessionEvent<StoreMs>, "time">): DueKey | undefined {
  switch (type) {
    case "created":
      return `+${sid}`;
    case "ended":
      return sid;
    case "all_ended":
      return `*${revokedUntil}`;
    default:
      return undefined;
  }
}

/** A record of something that happened and has not been recorded as an event yet. */
export type DueRecord = {
  readonly key: DueKey;
  /** When the record of the unrecorded event was written, or when an instance last began to write that event to the audit log. */
  readonly since: StoreMs;
  readonly event: SessionEvent<StoreMs>;
  readonly ids: Partial<Correlation>;
  /** Present only if the session ended because a token was reused: see `authn_token_reuse`. */
  readonly cause?: "two_holders";
};

/** The events still to be recorded (due records) in a part of the store, such as a node of Redis. A part is available or not as a whole. */
export type DueRecords = {
  readonly part: string;
  readonly now: StoreMs;
  readonly records: readonly DueRecord[];
};

export type EventRecord = {
  readonly event: SessionEvent;
  /** The due record that is deleted when the event is written; absent for events that have none. */
  readonly dueKey?: DueKey | undefined;
  /** Distinguishes events that have no due record and are otherwise equal. An event that is written twice is kept once. */
  readonly id?: string;
};

export interface SessionEventLog {
  /**
   * Keeps events for `retentionMs` (0: not at all), and deletes their due records. An event whose due record is gone was recorded before,
   * and is not written again. An event that needs no due record is not written if its session is not live and has no events, because then
   * `forget` has removed them.
   *
   * @returns the events that the store did not accept, or may not have accepted; they are to be written again
   */
  recordEvents(records: readonly EventRecord[], retentionMs: number): Promise<readonly EventRecord[]>;

  /** Returns the selected events in no particular order, and the logouts of everyone. */
  events(of: EventsOf): Promise<readonly SessionEvent[]>;

  /** Returns all sessions of a subject that have events, in order of their ids; `events` finds only the most recent ones. */
  eventSessions(subject: string): Promise<readonly SessionId[]>;

  /** Returns some of the events still to be recorded, of each available part of the store. @throws StoreUnavailable if there is none */
  dueRecords(): Promise<readonly DueRecords[]>;

  /** Claims an unrecorded event. One instance alone gets true, and may record it. If it fails, another can claim the event later. */
  claimRecord(record: DueRecord): Promise<boolean>;
}
