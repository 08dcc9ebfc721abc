/** Events as the recorder passes them to a store whose clock was never set: its time is that of the wall clock. */
import { dueKeyOf, type EventRecord, type SessionEvent } from "../../src/session/events.ts";
import type { StoreMs, WallMs } from "../../src/session/time.ts";

export type StoreEvent = SessionEvent<StoreMs>;

export function recordOf(event: StoreEvent): EventRecord {
  return { event: event as SessionEvent<StoreMs & WallMs>, dueKey: dueKeyOf(event) };
}
