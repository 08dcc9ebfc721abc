/** auth.admin.v1.SessionAdminService: converts between messages and the domain. It decides nothing but whether an access cookie fits. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type {
  ElevateSessionRequest,
  ListSessionEventsRequest,
  ListSessionsRequest,
  SessionAdminService,
} from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import * as admin from "../../session/admin/admin.ts";
import type { SessionFilter } from "../../session/admin/filter.ts";
import { unbindDevice } from "../../session/devices/device.ts";
import { invalidRequest, ServiceError } from "../../session/errors.ts";
import { listEvents } from "../../session/events/page.ts";
import { rateLimited } from "../errors/connect-errors.ts";
import { authenticationOf, sessionIdOf } from "../messages.ts";
import { pageSizeOf, parsePageToken, rejectForeignPosition, toPageToken } from "../page.ts";
import { requestContextOf } from "../request-context.ts";
import { givenTime, shownTime } from "../times.ts";
import { requireAccessCookie } from "./access-cookie.ts";
import { createSession } from "./create-session.ts";
import type { SessionAdminServiceDeps } from "./deps.ts";
import { introspectToken } from "./introspect-token.ts";
import { sessionMessage } from "./session-fields.ts";
import { kindOf } from "./session-limit.ts";
import { exportSubject, forgetSubject } from "./subjects.ts";
import { isRefresh, updateSession, updateSubjectSessions } from "./update-session.ts";
import { eventMessage } from "./views.ts";
import { watchRevocations } from "./watch-revocations.ts";

export function sessionAdminService(deps: SessionAdminServiceDeps): ServiceImpl<typeof SessionAdminService> {
  return {
    createSession: (request, context) => createSession(deps, request, context),
    getSession: (request) => getSession(deps, request.sessionId),
    listSessions: (request) => listSessions(deps, request),
    listSessionEvents: (request) => listSessionEvents(deps, request),
    async revokeSession({ sessionId }, context) {
      const sid = sessionIdOf("session_id", sessionId);
      return { revokedCount: await admin.revoke(deps, sid, requestContextOf(context)) };
    },
    async revokeSubjectSessions({ subject, exceptSessionId }, context) {
      const except = exceptSessionId ? sessionIdOf("except_session_id", exceptSessionId) : undefined;
      return { revokedCount: await admin.revokeSubject(deps, subject, except, requestContextOf(context)) };
    },
    async revokeAllSessions({ issuedBefore }, context) {
      const before = issuedBefore && givenTime(issuedBefore, deps.store.shiftMs());
      const revokedUntil = await admin.revokeAll(deps, before, requestContextOf(context));
      return { revokedUntilTime: shownTime(revokedUntil, deps.store.shiftMs()) };
    },
    elevateSession: (request, context) => elevateSession(deps, request, context),
    updateSession: (request, context) => updateSession(deps, request, context),
    updateSubjectSessions: (request, context) => updateSubjectSessions(deps, request, context),
    async unbindDevice({ sessionId }, context) {
      const session = await unbindDevice(deps, sessionIdOf("session_id", sessionId), requestContextOf(context));
      if (session === undefined) throw new ServiceError("E404_NOT_FOUND");
      return { session: sessionMessage(session, deps.store.shiftMs(session)) };
    },
    forgetSubject: (request, context) => forgetSubject(deps, request, context),
    exportSubject: (request, context) => exportSubject(deps, request, context),
    introspectToken: ({ token }) => introspectToken(deps, token),
    watchRevocations: (request, context) => watchRevocations(deps, request, context),
  };
}

async function getSession({ store }: SessionAdminServiceDeps, sessionId: string) {
  const session = await admin.find(store, sessionIdOf("session_id", sessionId));
  if (session === undefined) throw new ServiceError("E404_NOT_FOUND");
  return { session: sessionMessage(session, store.shiftMs(session)) };
}

async function listSessions({ store }: SessionAdminServiceDeps, request: ListSessionsRequest) {
  const from = parsePageToken(request.pageToken);
  const limit = pageSizeOf(request.pageSize);
  const subject = request.subject === "" ? undefined : request.subject;
  const filter = filterOf(request, store.shiftMs(subject === undefined ? undefined : { subject }));
  const page = await admin.list(store, subject, limit, from, filter).catch(rejectForeignPosition);
  const sessions = page.sessions.map((session) => sessionMessage(session, store.shiftMs(session)));
  return { sessions, nextPageToken: toPageToken(page.next) };
}

function filterOf(request: ListSessionsRequest, shiftMs: number): SessionFilter {
  const { subjectPrefix, clientId, device, ipAddress, createdAfter, createdBefore } = request;
  const kind = kindOf(request.clientKind);
  return {
    ...(kind && { kind }),
    ...(subjectPrefix !== "" && { subjectPrefix }),
    ...(clientId !== "" && { clientId }),
    ...(device !== "" && { device }),
    ...(ipAddress !== "" && { ipAddress }),
    ...(createdAfter && { createdFrom: givenTime(createdAfter, shiftMs) }),
    ...(createdBefore && { createdBefore: givenTime(createdBefore, shiftMs) }),
  };
}

async function elevateSession(deps: SessionAdminServiceDeps, request: ElevateSessionRequest, context: HandlerContext) {
  const sid = sessionIdOf("session_id", request.sessionId);
  const authentication = authenticationOf(request, deps.clock());
  if (authentication === undefined) throw invalidRequest("auth_time", "is required");
  const session = deps.cookie.setsAccess ? await admin.find(deps.store, sid) : undefined;
  if (session !== undefined) requireAccessCookie(deps, { ...session, authentication });
  const refresh = isRefresh(request.accessTokens);
  const result = await admin.elevate(deps, sid, authentication, refresh, requestContextOf(context));
  if (result.ok) return { session: sessionMessage(result.session, deps.store.shiftMs(result.session)) };
  if (result.reason === "rate_limited") throw rateLimited(result.retryAfterMs);
  if (result.reason === "has_actor") {
    const explanation = "the session has an actor: its subject does not use it, so it is never elevated";
    throw new ServiceError("E400_FAILED_PRECONDITION", explanation);
  }
  if (result.reason === "outdated") throw invalidRequest("auth_time", "is before the session's");
  throw new ServiceError("E404_NOT_FOUND");
}

async function listSessionEvents({ store }: SessionAdminServiceDeps, request: ListSessionEventsRequest) {
  const { subject, sessionId } = request;
  const of = sessionId === "" ? { subject } : { sid: sessionIdOf("session_id", sessionId) };
  const from = parsePageToken(request.pageToken);
  const page = await listEvents(store, of, pageSizeOf(request.pageSize), from).catch(rejectForeignPosition);
  return { events: page.events.map(eventMessage), nextPageToken: toPageToken(page.next) };
}
