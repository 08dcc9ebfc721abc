/**
 * Creates and reads the records of session events in a store. In these tests the store's clock was never set, so its time equals the wall
 * clock.
 */
import {
  type DueRecord,
  dueKeyOf,
  type EventRecord,
  type Origin,
  type SessionEvent,
} from "../../../src/service/session/events/events.ts";
import type { NewSession, SessionId } from "../../../src/service/session/model.ts";
import type { SessionStore } from "../../../src/service/session/ports.ts";
import { type StoreMs, storeMs, type WallMs } from "../../../src/service/session/time.ts";
import type { Login } from "./context.ts";
import { newSession, nonce, SECOND } from "./sessions.ts";

export type StoreEvent = SessionEvent<StoreMs>;

/** How long the stores of these tests keep events, in ms. */
export const RETENTION = 600 * SECOND;

export function recordOf(event: StoreEvent): EventRecord {
  return { event: event as SessionEvent<StoreMs & WallMs>, dueKey: dueKeyOf(event) };
}

/** Creates a session. If an origin is given, the store also keeps a record of the creation, which is due to be written to the log. */
export async function loginWith(
  store: SessionStore,
  user: string,
  more: Partial<NewSession> = {},
  origin?: Origin,
): Promise<Login> {
  const [session, first] = [newSession(user, more), nonce()];
  await store.create(session, first, { cap: 1_000, origin });
  return { sid: session.sid, first: { generation: 1, nonce: first, issuedAt: storeMs(0) } };
}

/**
 * Returns the event records of these sessions that are due to be written to the log. Without sessions, it returns the records of logouts of
 * all users.
 */
export async function dueOf(store: SessionStore, ...sids: SessionId[]): Promise<DueRecord[]> {
  const parts = await store.dueRecords();
  const records = parts.flatMap(({ records }) => records);
  return records.filter(({ event: { sid } }) => (sid === undefined ? sids.length === 0 : sids.includes(sid)));
}

/** Forgets what is to be recorded, and returns it. */
export async function takeDue(store: SessionStore): Promise<DueRecord[]> {
  const taken: DueRecord[] = [];
  for (;;) {
    const records = (await store.dueRecords()).flatMap((part) => part.records);
    if (records.length === 0) return taken;
    taken.push(...records);
    await store.recordEvents(
      records.map(({ event }) => recordOf(event)),
      0,
    );
  }
}
