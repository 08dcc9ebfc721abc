/** auth.v1.SessionService: converts between messages and the domain. It decides nothing about sessions. */
import type { ConnectError, HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type {
  ListSessionsRequest,
  Session as SessionMessage,
  SessionService,
} from "../../../../gen/auth/v1/session_pb.ts";
import type { Requester } from "../../session/audit.ts";
import { logout, logoutByRefreshTokens } from "../../session/endings/logout.ts";
import { type Limited, type Refused, ServiceError } from "../../session/errors.ts";
import { isDeviceBound, type LastSeen, parseSessionId, type Session } from "../../session/model.ts";
import { listOwn, revokeOthers, revokeOwn } from "../../session/own-sessions.ts";
import type { AccessTokens, Random, RateLimit, RefreshTokens, SessionStore } from "../../session/ports.ts";
import { refresh } from "../../session/rotation/refresh.ts";
import { rateLimited, SHARED_ERRORS } from "../errors/connect-errors.ts";
import { timesOf } from "../messages.ts";
import { pageSizeOf, parsePageToken, rejectForeignPosition, toPageToken } from "../page.ts";
import { requestContextOf } from "../request-context.ts";
import { type CredentialDeps, credentialOf } from "./credentials.ts";
import { DEVICE } from "./device-cookie.ts";
import { REGISTRATION, registrationValue, SKIPPED } from "./device-headers.ts";
import { type DeviceServiceDeps, readDeviceHeaders, register, renew } from "./device-service.ts";
import { DPOP, provenKey } from "./dpop.ts";
import { expireElsewhere, refusalOf, sentCookies, setCookies } from "./refusal.ts";
import { cookiesAfterLogout } from "./removed-cookies.ts";

export type SessionServiceDeps = DeviceServiceDeps &
  CredentialDeps & {
    readonly store: SessionStore;
    readonly accessTokens: AccessTokens;
    readonly refreshTokens: RefreshTokens;
    readonly random: Random;
    readonly refreshLimit: RateLimit;
    readonly lastSeen: ((requester: Requester) => LastSeen) | undefined;
  };

export function sessionService(deps: SessionServiceDeps): ServiceImpl<typeof SessionService> {
  const { cookie } = deps;
  return {
    async refresh(_request, context) {
      const { tokens, hasSeveral } = credentialOf(context, "refresh");
      const isPlain = !mentionsDevice(context.requestHeader);
      const deviceHeaders = isPlain ? undefined : readDeviceHeaders(deps, context, tokens[0].sid);
      const result = await refresh(deps, tokens, requestContextOf(context), deviceHeaders);
      if (!result.ok) throw refusalOfRefresh(deps, result, context);
      const { accessToken, offer } = result;
      for (const line of cookie.set(result)) context.responseHeader.append("set-cookie", line);
      if (hasSeveral) expireElsewhere(deps, context);
      if (offer !== undefined) offerRegistration(context, offer);
      return { data: { accessToken: accessToken.token } };
    },

    registerDevice: (_request, context) => register(deps, context),
    renewDevice: (_request, context) => renew(deps, context),

    async logout(_request, context) {
      const result = await logout(deps, credentialOf(context, "logout"), requestContextOf(context));
      const { keepsCookies } = requireOk(deps, result, context);
      if (!keepsCookies) setCookies(context, cookiesAfterLogout(deps, sentCookies(context)));
      return { data: {} };
    },

    async logoutByCookie({ sessionId }, context) {
      const { tokens } = credentialOf(context, "logoutByCookie");
      const proof = provenKey(deps, context, tokens[0].sid);
      const result = await logoutByRefreshTokens(deps, tokens, requestContextOf(context), proof, sessionId);
      requireOk(deps, result, context);
      setCookies(context, cookiesAfterLogout(deps, sentCookies(context)));
      return { data: {} };
    },

    listSessions: (request, context) => listSessions(deps, request, context),

    async revokeSession(request, context) {
      const { claims: caller } = credentialOf(context, "revokeSession");
      const target = parseSessionId(request.sessionId);
      const result = await revokeOwn(deps, caller, target, requestContextOf(context));
      if (!result.ok && result.reason === "not_found") throw new ServiceError("E404_NOT_FOUND");
      requireOk(deps, result, context);
      return { data: {} };
    },

    async revokeOtherSessions(_request, context) {
      const { claims: caller } = credentialOf(context, "revokeOtherSessions");
      const result = await revokeOthers(deps, caller, requestContextOf(context));
      return { data: { revokedCount: requireOk(deps, result, context).count } };
    },
  };
}

/**
 * Returns whether a request may present a device key. Most requests present none, and nothing about devices is done for them. The request
 * decides, not the configuration: another instance may have offered device binding, and any client may bind a session with DPoP.
 */
function mentionsDevice(headers: Headers): boolean {
  return (
    headers.get(DPOP) !== null || headers.get(SKIPPED) !== null || headers.get("cookie")?.includes(DEVICE) === true
  );
}

type RefreshRefused = Extract<Awaited<ReturnType<typeof refresh>>, { readonly ok: false }>;

function refusalOfRefresh(deps: SessionServiceDeps, result: RefreshRefused, context: HandlerContext): ConnectError {
  if (result.reason === "device_cookie_stale") setCookies(context, deps.device.cookie.expire());
  if (result.reason === "device_cookie_stale" || result.reason === "device_renewal_skipped") {
    return SHARED_ERRORS.retryLater;
  }
  if (result.reason === "rate_limited") return rateLimited(result.retryAfterMs);
  if (result.reason === "invalid_target") throw new Error("no audience was asked for");
  if ("offer" in result && result.offer !== undefined) offerRegistration(context, result.offer);
  return refusalOf(deps, result, context);
}

export function offerRegistration({ responseHeader }: HandlerContext, challenge: string): void {
  responseHeader.set(REGISTRATION, registrationValue(challenge));
}

async function listSessions(deps: SessionServiceDeps, request: ListSessionsRequest, context: HandlerContext) {
  const { claims: caller } = credentialOf(context, "listSessions");
  const limit = pageSizeOf(request.pageSize);
  const from = parsePageToken(request.pageToken);
  const result = await listOwn(deps, caller, limit, from).catch(rejectForeignPosition);
  const { page } = requireOk(deps, result, context);
  const sessions = page.sessions.map((session) => ({
    ...ownSessionMessage(session, deps.store.shiftMs(session)),
    current: session.sid === caller.sid,
  }));
  return { data: { sessions, nextPageToken: toPageToken(page.next) } };
}

/** Returns what a user sees of an own session. */
function ownSessionMessage(session: Session, shiftMs: number) {
  return {
    sessionId: session.sid,
    ...session.client,
    ...timesOf(session, shiftMs),
    deviceBound: isDeviceBound(session),
    actor: session.actor?.subject ?? "",
    lastSeenUserAgent: session.lastSeen?.userAgent ?? "",
    lastSeenIpAddress: session.lastSeen?.ipAddress ?? "",
  } satisfies Record<Exclude<keyof SessionMessage, `$${string}` | "current">, unknown>;
}

function requireOk<T extends { readonly ok: true }>(
  deps: SessionServiceDeps,
  result: T | Refused | Limited,
  context: HandlerContext,
): T {
  if (result.ok) return result;
  if (result.reason === "rate_limited") throw rateLimited(result.retryAfterMs);
  throw refusalOf(deps, result, context);
}
