import type { HandlerContext } from "@connectrpc/connect";
import {
  type CreateSessionRequest,
  DeviceBindingPolicy,
  type Upstream as UpstreamMessage,
} from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import type { Created } from "../../session/admin/create.ts";
import { createForActor } from "../../session/admin/create-for-actor.ts";
import { invalidRequest, ServiceError } from "../../session/errors.ts";
import { type Actor, audiencesOf, type Upstream } from "../../session/model.ts";
import { rateLimited } from "../errors/connect-errors.ts";
import { audienceOf, authenticationOf, claimsOf, durationOf, sessionIdOf } from "../messages.ts";
import { registrationValue } from "../public/device-headers.ts";
import { REGISTER_PATH } from "../public/device-service.ts";
import { requestContextOf } from "../request-context.ts";
import { wallTime } from "../times.ts";
import { requireAccessCookie } from "./access-cookie.ts";
import type { SessionAdminServiceDeps } from "./deps.ts";
import { kindOf, limitExceeded, limitFor } from "./session-limit.ts";
import { sessionMessage, transportOf } from "./views.ts";

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
  const created = await createForActor(deps, wanted, requestContextOf(context), replaces, limit);
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

export type WantedDeps = Pick<
  SessionAdminServiceDeps,
  "audience" | "sessionIdleTtlMs" | "sessionAbsoluteTtlMs" | "actorSessionMaxMs" | "clock" | "device" | "oauthEndpoints"
>;

/** Returns the session that a request describes. @throws ServiceError if it cannot be created */
export function wantedSession(deps: WantedDeps, request: CreateSessionRequest) {
  const audience = audienceOf(request.audience, request.audiences, deps.audience);
  const actor = actorOf(request);
  const mostMs = actor === undefined ? Number.POSITIVE_INFINITY : deps.actorSessionMaxMs;
  const maxAbsoluteMs = Math.min(deps.sessionAbsoluteTtlMs, mostMs);
  const absoluteLifetimeMs = durationOf("absolute_lifetime", request.absoluteLifetime, maxAbsoluteMs);
  const authentication = authenticationOf(request, deps.clock());
  const deviceRequired = request.deviceBindingPolicy === DeviceBindingPolicy.REQUIRED;
  if (deviceRequired && !deps.device.offers) {
    throw invalidRequest("device_binding_policy", "REQUIRED needs DEVICE_BINDING=on");
  }
  const transport = transportOf(request.transport);
  if (transport === "token") checkTokenTransport(deps, request, deviceRequired);
  const { dpopJkt } = request;
  const kind = kindOf(request.client?.kind);
  if (dpopJkt !== "") checkKey(deps, dpopJkt, deviceRequired);
  return {
    subject: request.subject,
    clientId: request.clientId || audiencesOf(audience)[0],
    audience,
    claims: claimsOf(request.claims),
    client: {
      userAgent: request.client?.userAgent ?? "",
      ipAddress: request.client?.ipAddress ?? "",
      displayName: request.client?.displayName ?? "",
    },
    idleTimeoutMs: durationOf("idle_timeout", request.idleTimeout, Math.min(deps.sessionIdleTtlMs, mostMs)),
    absoluteLifetimeMs,
    ...(authentication && { authentication }),
    ...(deviceRequired && { deviceRequired: true as const }),
    ...(transport && { transport }),
    ...(dpopJkt !== "" && { dpopJkt }),
    ...(kind && { kind }),
    ...(request.persistent === false && { persistent: false as const }),
    ...(actor && { actor }),
    ...(request.upstream && { upstream: upstreamOf(request.upstream) }),
  };
}

function upstreamOf({ issuer, sessionId, subject }: UpstreamMessage): Upstream {
  if (sessionId === "" && subject === "") throw invalidRequest("upstream", "needs session_id or subject");
  return { issuer, ...(sessionId !== "" && { sessionId }), ...(subject !== "" && { subject }) };
}

/** Returns who is to use the session in place of its subject; undefined if nobody is. */
function actorOf({ actor, subject, limit, authTime, amr, acr }: CreateSessionRequest): Actor | undefined {
  if (actor === undefined) return undefined;
  if (actor.subject === subject) throw invalidRequest("actor.subject", "is the subject of the session");
  if (authTime !== undefined || amr.length > 0 || acr !== "") {
    throw invalidRequest("actor", "goes with no auth_time, amr or acr: the subject has not authenticated");
  }
  if (limit !== undefined) throw invalidRequest("limit", "goes with no actor: the session counts among no others");
  if (actor.endWithSession && actor.sessionId === "") throw invalidRequest("actor.session_id", "is required");
  return {
    subject: actor.subject,
    ...(actor.reason !== "" && { reason: actor.reason }),
    ...(actor.sessionId !== "" && { sessionId: sessionIdOf("actor.session_id", actor.sessionId) }),
    ...(actor.endWithSession && { endsWithSession: true as const }),
  };
}

/** Checks a session that only the token endpoint can refresh. Such a session cannot require device binding, which needs cookies. */
function checkTokenTransport(
  { oauthEndpoints }: WantedDeps,
  { persistent }: CreateSessionRequest,
  deviceRequired: boolean,
): void {
  if (!oauthEndpoints) throw invalidRequest("transport", "TOKEN needs OAUTH_ENDPOINTS=on");
  if (deviceRequired) throw invalidRequest("transport", "TOKEN goes with no device_binding_policy");
  if (persistent === false)
    throw invalidRequest("persistent", "is for cookies, which the transport TOKEN does not have");
}

/** Matches a SHA-256 key thumbprint in base64url. The last character has two bits more than the hash, which must be zero. */
const THUMBPRINT = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;

/** Checks the key thumbprint of a new session. @throws ServiceError if no client could prove possession of such a key */
function checkKey({ oauthEndpoints }: WantedDeps, thumbprint: string, deviceRequired: boolean): void {
  if (!THUMBPRINT.test(thumbprint)) throw invalidRequest("dpop_jkt", "is not a SHA-256 thumbprint in base64url");
  if (!oauthEndpoints) throw invalidRequest("dpop_jkt", "needs OAUTH_ENDPOINTS=on");
  if (deviceRequired) throw invalidRequest("dpop_jkt", "goes with no device_binding_policy");
}

function response(
  { cookie, device, store }: SessionAdminServiceDeps,
  { session, accessToken, refreshToken, secondsLeft }: Created,
) {
  const isToken = session.transport === "token";
  const maxAge = session.persistent === false ? undefined : secondsLeft;
  const setCookies = isToken ? [] : cookie.set(refreshToken, maxAge, session.sid, accessToken);
  const offersDevice = device.offers && !isToken && session.device === undefined;
  const challenge = offersDevice ? device.challenges.issue(session.sid, device.now(session.sid)) : undefined;
  return {
    session: sessionMessage(session, store.shiftMs(session)),
    accessToken: accessToken.token,
    accessTokenExpireTime: wallTime(accessToken.expiresAt),
    refreshToken,
    setCookie: setCookies[0] ?? "",
    setCookies: [...setCookies],
    ...(challenge !== undefined && { secureSessionRegistration: registrationValue(REGISTER_PATH, challenge) }),
  };
}
