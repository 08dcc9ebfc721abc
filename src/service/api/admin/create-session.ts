import type { HandlerContext } from "@connectrpc/connect";
import type { CreateSessionRequest } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import type { Created } from "../../session/admin/create.ts";
import { createForActor } from "../../session/admin/create-for-actor.ts";
import { invalidRequest, ServiceError } from "../../session/errors.ts";
import { rateLimited } from "../errors/connect-errors.ts";
import { sessionIdOf } from "../messages.ts";
import { registrationValue } from "../public/device-headers.ts";
import { requestContextOf } from "../request-context.ts";
import { wallTime } from "../times.ts";
import { requireAccessCookie } from "./access-cookie.ts";
import type { SessionAdminServiceDeps } from "./deps.ts";
import { sessionMessage, wantedSession } from "./session-fields.ts";
import { limitExceeded, limitFor } from "./session-limit.ts";

export async function createSession(
  deps: SessionAdminServiceDeps,
  request: CreateSessionRequest,
  context: HandlerContext,
) {
  const wanted = wantedSession(deps, request);
  const replaces = request.replacesSessionId
    ? sessionIdOf("replaces_session_id", request.replacesSessionId)
    : undefined;
  requireAccessCookie(deps, wanted);
  if (replaces !== undefined && replaces === wanted.actor?.sessionId) {
    throw invalidRequest("replaces_session_id", "is the session of the actor");
  }
  const limit = limitFor(request.limit, deps.limitPolicies(), wanted);
  const created = await createForActor(deps, wanted, requestContextOf(context), { replaces, limit });
  if (created.ok) return response(deps, created);
  if (created.reason === "rate_limited") throw rateLimited(created.retryAfterMs);
  if (created.reason === "session_limit") throw limitExceeded(created, (session) => deps.store.shiftMs(session));
  throw new ServiceError("E400_FAILED_PRECONDITION", `actor.session_id: ${ACTOR_REFUSALS[created.reason]}`);
}

const ACTOR_REFUSALS = {
  ended: "is not a live session of actor.subject",
  has_actor: "is a session in which somebody acts for its subject already",
  full: "too many sessions end with this one",
} as const;

function response({ cookie, device, store }: SessionAdminServiceDeps, created: Created) {
  const { session, accessToken, refreshToken } = created;
  const isToken = session.transport === "token";
  const setCookies = isToken ? [] : cookie.set(created);
  const offersDevice = device.offers && !isToken && session.device === undefined;
  const challenge = offersDevice ? device.challenges.issue(session.sid, device.now(session.sid)) : undefined;
  return {
    session: sessionMessage(session, store.shiftMs(session)),
    accessToken: accessToken.token,
    accessTokenExpireTime: wallTime(accessToken.expiresAt),
    refreshToken,
    setCookie: setCookies[0] ?? "",
    setCookies: [...setCookies],
    ...(challenge !== undefined && { secureSessionRegistration: registrationValue(challenge) }),
  };
}
