/**
 * What is kept of the life of sessions, for a bounded time: so that support can see why one ended. Never a refresh.
 *
 * Every creation and every ending is recorded once, whatever the response to its caller. The step that creates or ends a session leaves,
 * in the same step, a *due record*: what is to be recorded, and who asked for it. The instance that asked writes the line of the
 * audit as soon as the store has replied, then the event; writing the event takes the due record away in one step, and nothing is
 * written where it is not there any more. A due record that stays (the reply was lost, the acknowledgement failed, the instance has
 * died) is claimed by an instance, one of them, which writes both (record-events.ts).
 */
import type { Correlation } from "./audit.ts";
import type { ClientData, EndReason, SessionId } from "./model.ts";
import type { StoreMs, WallMs } from "./time.ts";

/** An event as it is kept and shown: its times are the wall clock's. A due record has it in the store's time. */
export type SessionEvent<Time extends StoreMs | WallMs = WallMs> = {
  /** The time by the clock of the instance that recorded it. An event that was found later has the time of its step. */
  readonly time: Time;
  readonly type: "created" | "ended" | "elevated" | "all_ended" | "device_bound" | "device_unbound";
  /** Absent for the end of all. */
  readonly sid?: SessionId;
  /** Absent where it was not known. */
  readonly subject?: string;
  /** Why the session ended. */
  readonly reason?: EndReason;
  /** The end of all: sessions that were created at this time or before have ended. */
  readonly revokedUntil?: Time;
  /** The network address of the request that it belongs to. */
  readonly address?: string;
  /** The credential of the admin API that was used, by its name. */
  readonly admin?: string;
  /** What the session was created with. */
  readonly client?: ClientData;
  readonly clientId?: string;
};

/** Whose events: of a session, or of the last sessions of a subject. */
export type EventsOf = { readonly sid: SessionId } | { readonly subject: string };

/** Events of one session that are kept; of what comes later, only its end. */
export const MAX_EVENTS_PER_SESSION = 32;
/** Sessions of one subject whose events are found by the subject: the last ones. */
export const MAX_EVENT_SESSIONS = 64;
/** Ends of all that are kept. */
export const MAX_ENDS_OF_ALL = 16;

/** Who asked for a step: what its record tells of the request. */
export type Origin = Partial<Correlation> & {
  readonly address?: string;
  readonly admin?: string;
  /** Whose session it is, where the caller has proven it: then its ending is recorded even if the store has lost the session. */
  readonly subject?: string;
};

/** Names a due record. A session is created once and ends once, all sessions up to a time end once. */
type DueKey = string;

/** The due record that a step leaves for an event; undefined for events that leave none. */
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

/** What a step has left to be recorded. */
export type DueRecord = {
  readonly key: DueKey;
  /** When the due record was written, or when an instance last began to record its event. */
  readonly since: StoreMs;
  readonly event: SessionEvent<StoreMs>;
  readonly ids: Partial<Correlation>;
  /** Present for a reuse only: see `authn_token_reuse`. */
  readonly cause?: "two_holders";
};

/** Some due records of one part of the store, which is available or not as a whole. */
export type DueRecords = {
  /** The name of the part. */
  readonly part: string;
  /** When they were read. */
  readonly now: StoreMs;
  readonly records: readonly DueRecord[];
};

/** An event to write. */
export type EventRecord = {
  readonly event: SessionEvent;
  /** The due record that it takes away; absent for events that leave none. */
  readonly dueKey?: DueKey | undefined;
  /** Tells apart events that leave no due record and are equal in everything else; written twice, one is kept once. */
  readonly id?: string;
};

export interface SessionEventLog {
  /**
   * Keeps events, each for `retentionMs` (0: not at all), and takes their due records away. An event whose due record is not there
   * is recorded already: nothing is written.
   *
   * @returns those that the store did not take, or may not have taken: to be written again
   */
  recordEvents(records: readonly EventRecord[], retentionMs: number): Promise<readonly EventRecord[]>;

  /** In no particular order, with the ends of all among them. */
  events(of: EventsOf): Promise<readonly SessionEvent[]>;

  /** A bounded number of due records of each part of the store that is available. @throws StoreUnavailable when none is */
  dueRecords(): Promise<readonly DueRecords[]>;

  /** Claims a due record: true for one instance alone, and the record counts as left anew. */
  claimRecord(record: DueRecord): Promise<boolean>;
}
