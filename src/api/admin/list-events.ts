import type { ListSessionEventsRequest } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { invalidRequest } from "../../session/errors.ts";
import type { SessionEvent } from "../../session/events.ts";
import type { SessionStore } from "../../session/ports.ts";
import { sessionIdOf } from "../messages.ts";
import { pageSizeOf, parsePageToken, toPageToken } from "../page.ts";
import { wallTime } from "../times.ts";
import { EVENT_TYPES, REVOCATION_REASONS } from "./enums.ts";

type Deps = { readonly store: Pick<SessionStore, "events"> };

/** Lists events, newest first. A subject has few events, so each call reads all of them and returns a part. */
export async function listSessionEvents({ store }: Deps, request: ListSessionEventsRequest) {
  const { subject, sessionId } = request;
  const of = sessionId === "" ? { subject } : { sid: sessionIdOf("session_id", sessionId) };
  const after = positionIn(request.pageToken);
  const limit = pageSizeOf(request.pageSize);
  // The index of each event in the store's response keeps events of the same millisecond in their order.
  const placed = (await store.events(of)).map((event, place) => ({ event, time: event.time, place }));
  const events = placed.sort(newestFirst);
  const rest = after === undefined ? events : events.filter((event) => newestFirst(after, event) < 0);
  const page = rest.slice(0, limit);
  const last = page.at(-1);
  const next = rest.length > limit && last ? `${last.time}.${last.place}` : undefined;
  return { events: page.map(({ event }) => eventMessage(event)), nextPageToken: toPageToken(next) };
}

type Position = { readonly time: number; readonly place: number };

function newestFirst(a: Position, b: Position): number {
  return b.time - a.time || b.place - a.place;
}

function positionIn(pageToken: string): Position | undefined {
  const text = parsePageToken(pageToken);
  if (text === undefined) return undefined;
  const [, time, place] = /^(\d{1,15})\.(\d{1,6})$/.exec(text) ?? [];
  if (time === undefined) throw invalidRequest("page_token", "is not a page token");
  return { time: Number(time), place: Number(place) };
}

function eventMessage(event: SessionEvent) {
  const { reason, revokedUntil, client } = event;
  return {
    eventTime: wallTime(event.time),
    type: EVENT_TYPES[event.type],
    sessionId: event.sid ?? "",
    subject: event.subject ?? "",
    ipAddress: event.address ?? "",
    admin: event.admin ?? "",
    clientId: event.clientId ?? "",
    ...(reason !== undefined && { revocationReason: REVOCATION_REASONS[reason] }),
    ...(revokedUntil !== undefined && { revokedUntilTime: wallTime(revokedUntil) }),
    ...(client !== undefined && { client }),
  };
}
