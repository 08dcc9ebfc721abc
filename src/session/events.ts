/** What is kept of the life of sessions, for a bounded time: so that support can see why one ended. Never a refresh. */
import type { ClientData, EndReason, SessionId } from "./model.ts";

export type SessionEvent = {
  /** By the clock of the instance that recorded it, ms. */
  readonly time: number;
  readonly type: "created" | "ended" | "elevated" | "all_ended" | "device_bound" | "device_unbound";
  /** Absent for the end of all. */
  readonly sid?: SessionId;
  /** Absent where it was not known. */
  readonly subject?: string;
  /** Why the session ended. */
  readonly reason?: EndReason;
  /** The end of all: sessions that were created at this time or before have ended, ms. */
  readonly revokedUntil?: number;
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

export interface SessionEventLog {
  /** Keeps events, each for `retention` ms. They are there soon, and may be lost if the process or the store fails. */
  recordEvents(events: readonly SessionEvent[], retention: number): Promise<void>;

  /** In no particular order, with the ends of all among them. */
  events(of: EventsOf): Promise<readonly SessionEvent[]>;
}
