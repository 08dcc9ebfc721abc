/** The pages in which the events of a session or a subject are listed, newest first. */
import { InvalidCursor, type SessionStore } from "../ports.ts";
import { type EventsOf, type SessionEvent, shownEvents } from "./events.ts";

/** The place of an event in the list. The index in the store's response keeps events of the same millisecond in their order. */
type Position = { readonly time: number; readonly index: number };

type EventPage = {
  readonly events: readonly SessionEvent[];
  /** The position of the last event if others follow. */
  readonly next: string | undefined;
};

/**
 * Lists events, newest first. A subject has few events, so each call reads all of them and returns a part.
 *
 * @param from the `next` of the previous page
 * @throws InvalidCursor, StoreUnavailable
 */
export async function listEvents(
  store: Pick<SessionStore, "events">,
  of: EventsOf,
  limit: number,
  from: string | undefined,
): Promise<EventPage> {
  const after = from === undefined ? undefined : parsePosition(from);
  const found = shownEvents(await store.events(of)).map((event, index) => ({ event, time: event.time, index }));
  const sorted = found.sort(newestFirst);
  const rest = after === undefined ? sorted : sorted.filter((each) => newestFirst(after, each) < 0);
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  const next = rest.length > limit && last ? `${last.time}.${last.index}` : undefined;
  return { events: page.map(({ event }) => event), next };
}

function newestFirst(a: Position, b: Position): number {
  return b.time - a.time || b.index - a.index;
}

function parsePosition(text: string): Position {
  const [, time, index] = /^(\d{1,15})\.(\d{1,6})$/.exec(text) ?? [];
  if (time === undefined) throw new InvalidCursor("not a page of events");
  return { time: Number(time), index: Number(index) };
}
