/** ForgetSubject and ExportSubject of auth.admin.v1.SessionAdminService. */
import type { HandlerContext } from "@connectrpc/connect";
import type { ExportSubjectRequest, ForgetSubjectRequest } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import * as admin from "../../session/admin/admin.ts";
import { invalidRequest } from "../../session/errors.ts";
import { type SessionEvent, shownEvents } from "../../session/events/events.ts";
import type { Session } from "../../session/model.ts";
import type { SignalPage } from "../../signals/ports.ts";
import { parsePageToken, rejectForeignPosition, toPageToken } from "../page.ts";
import { requestContextOf } from "../request-context.ts";
import { shownTime } from "../times.ts";
import type { SessionAdminServiceDeps } from "./deps.ts";
import { sessionMessage } from "./session-fields.ts";
import { eventMessage } from "./views.ts";

const SESSIONS_PER_PAGE = 100;
/** How many sessions a page of events covers. A session has a few events, and 33 at most. */
const EVENT_SESSIONS_PER_PAGE = 50;

export async function forgetSubject(
  deps: SessionAdminServiceDeps,
  { subject }: ForgetSubjectRequest,
  context: HandlerContext,
) {
  const { subjectSignals: signals } = deps;
  const parts = { ...deps, delivered: signals?.delivered };
  const { sessions, events, signals: unread } = await admin.forgetSubject(parts, subject, requestContextOf(context));
  const subscriptionIds = [...((await signals?.named(subject)) ?? [])];
  return { revokedCount: sessions, eventCount: events, signalCount: unread, subscriptionIds };
}

type Part = {
  readonly sessions?: readonly Session[];
  readonly events?: readonly SessionEvent[];
  readonly signals?: SignalPage["signals"];
  /** The place at which the next page starts; undefined on the last one. */
  readonly next: string | undefined;
};

/** Returns a page: sessions, then events, then signals. A page has the first part of the next kind once a kind is complete. */
export async function exportSubject(
  deps: SessionAdminServiceDeps,
  { subject, pageToken }: ExportSubjectRequest,
  context: HandlerContext,
) {
  const { store, subjectSignals, audit } = deps;
  const { sessions = [], events = [], signals = [], next } = await pageFrom(deps, subject, parsePageToken(pageToken));
  const counts = { sessions: sessions.length, events: events.length, signals: signals.length };
  audit({ event: "subject_exported", ...counts }, requestContextOf(context));
  return {
    sessions: sessions.map((session) => sessionMessage(session, store.shiftMs(session))),
    events: events.map(eventMessage),
    signals: signals.map(({ signal: { sessionId, clientId = "", reason, happenedAt }, unreadBy }) => {
      const endTime = shownTime(happenedAt, store.shiftMs({ sid: sessionId }));
      return { sessionId, clientId, reason, endTime, subscriptionIds: [...unreadBy] };
    }),
    subscriptionIds: next === undefined ? [...((await subjectSignals?.named(subject)) ?? [])] : [],
    nextPageToken: toPageToken(next),
  };
}

/** @param position a letter for the kind of data, and a position in it; undefined for the first page */
async function pageFrom(deps: SessionAdminServiceDeps, subject: string, position = "s"): Promise<Part> {
  const after = position.slice(1);
  switch (position[0]) {
    case "s": {
      const listed = deps.store.list(subject, SESSIONS_PER_PAGE, after || undefined).catch(rejectForeignPosition);
      const { sessions, next } = await listed;
      return next === undefined
        ? { ...(await eventsFrom(deps, subject, "")), sessions }
        : { sessions, next: `s${next}` };
    }
    case "e":
      return eventsFrom(deps, subject, after);
    case "g":
      if (/^\d{1,15}$/.test(after)) return signalsFrom(deps, subject, Number(after));
  }
  throw invalidRequest("page_token", "is not a page token");
}

/** @param after the session whose events were the last ones of the previous page */
async function eventsFrom(deps: SessionAdminServiceDeps, subject: string, after: string): Promise<Part> {
  const sids = (await deps.store.eventSessions(subject)).filter((sid) => sid > after);
  const some = sids.slice(0, EVENT_SESSIONS_PER_PAGE);
  const found = await Promise.all(some.map((sid) => deps.store.events({ sid })));
  const events = shownEvents(found.flat().filter(({ sid }) => sid !== undefined));
  if (some.length < sids.length) return { events, next: `e${some.at(-1)}` };
  return { ...(await signalsFrom(deps, subject, 0)), events };
}

async function signalsFrom({ subjectSignals }: SessionAdminServiceDeps, subject: string, after: number): Promise<Part> {
  if (subjectSignals === undefined) return { next: undefined };
  const { signals, next } = await subjectSignals.page(subject, after);
  return { signals, next: next === undefined ? undefined : `g${next}` };
}
