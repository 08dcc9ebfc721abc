/** auth.admin.v1.SessionAdminService: message ↔ domain, and nothing decided here. */
import type { JsonObject } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type { SessionAdminService } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import * as admin from "../../session/admin.ts";
import type { Audit } from "../../session/audit.ts";
import { create } from "../../session/create.ts";
import { invalidRequest, ServiceError } from "../../session/errors.ts";
import type { RevocationFeed } from "../../session/feed.ts";
import { introspect } from "../../session/introspect.ts";
import { type Authentication, audiencesOf, type Revocation, type Session } from "../../session/model.ts";
import {
  type AccessTokens,
  type Clock,
  InvalidCursor,
  type Random,
  type RateLimit,
  type RefreshTokens,
  type SessionStore,
  StoreUnavailable,
} from "../../session/ports.ts";
import { callerKey } from "../caller.ts";
import { rateLimited } from "../errors/connect-errors.ts";
import {
  audienceOf,
  authenticationOf,
  claimsOf,
  durationOf,
  rejectDuplicateClaims,
  sessionIdOf,
  timesOf,
  toMsRoundedUp,
} from "../messages.ts";
import { pageSizeOf, parsePageToken, rejectForeignPosition, toPageToken } from "../page.ts";
import type { RefreshCookie } from "../public/cookie.ts";
import { stillAllowed, withAdmin } from "./authentication.ts";
import { REVOCATION_REASONS, TOKEN_TYPES } from "./enums.ts";

/** How long a watcher may take nothing of what he is told, ms. A slow one is told so before (feed.ts). */
const HANG_UP = 30_000;

export type SessionAdminServiceDeps = {
  readonly store: SessionStore;
  readonly refreshTokens: RefreshTokens;
  readonly accessTokens: AccessTokens;
  readonly random: Random;
  readonly audit: Audit;
  readonly cookie: RefreshCookie;
  readonly feed: Pick<RevocationFeed, "watch">;
  /** Signing keys that were revoked in an emergency. */
  readonly revokedKeyIds: () => readonly string[];
  readonly issuer: string;
  /** `aud` of a session that names none. */
  readonly audience: string;
  /** ms; also the most that a caller may ask for. */
  readonly sessionIdleTtl: number;
  /** ms; also the most that a caller may ask for. */
  readonly sessionAbsoluteTtl: number;
  readonly reuseInterval: number;
  readonly maxSessionsPerSubject: number;
  /** For what callers say of times. */
  readonly clock: Clock;
  /** By subject. */
  readonly createLimit: RateLimit;
};

function shown(session: Session) {
  return {
    sessionId: session.sid,
    subject: session.subject,
    clientId: session.clientId,
    audience: audiencesOf(session.audience)[0],
    audiences: [...audiencesOf(session.audience)],
    claims: JSON.parse(session.claims) as JsonObject,
    client: session.client,
    ...timesOf(session),
    ...(session.authentication && shownAuthentication(session.authentication)),
  };
}

function shownAuthentication({ time, methods, contextClass }: Authentication) {
  return { ...(time > 0 && { authTime: timestampFromMs(time) }), amr: [...methods], acr: contextClass };
}

function told(revocation: Revocation) {
  return {
    sessionId: revocation.sid,
    revokeTime: timestampFromMs(revocation.revokedAt),
    expireTime: timestampFromMs(revocation.expiresAt),
    reason: revocation.reason,
    revocationReason: REVOCATION_REASONS[revocation.reason],
  };
}

export function sessionAdminService(deps: SessionAdminServiceDeps): ServiceImpl<typeof SessionAdminService> {
  return {
    async createSession(request, context) {
      const audience = audienceOf(request.audience, request.audiences, deps.audience);
      const absoluteLifetime = durationOf("absolute_lifetime", request.absoluteLifetime, deps.sessionAbsoluteTtl);
      const authentication = authenticationOf(request, deps.clock());
      rejectDuplicateClaims(request.claims, authentication);
      const replaces = request.replacesSessionId
        ? sessionIdOf("replaces_session_id", request.replacesSessionId)
        : undefined;
      const wanted = {
        subject: request.subject,
        clientId: request.clientId || audiencesOf(audience)[0],
        audience,
        claims: claimsOf(request.claims),
        client: {
          userAgent: request.client?.userAgent ?? "",
          ipAddress: request.client?.ipAddress ?? "",
          displayName: request.client?.displayName ?? "",
        },
        idleTimeout: durationOf("idle_timeout", request.idleTimeout, deps.sessionIdleTtl),
        absoluteLifetime,
        ...(authentication && { authentication }),
      };
      const created = await create(withAdmin(deps, context), wanted, replaces);
      if ("limited" in created) throw rateLimited(created.retryAfterMs);
      const setCookies = deps.cookie.set(created.refreshToken, created.secondsLeft);
      return {
        session: shown(created.session),
        accessToken: created.accessToken.token,
        accessTokenExpireTime: timestampFromMs(created.accessToken.expiresAt),
        refreshToken: created.refreshToken,
        setCookie: setCookies[0],
        setCookies: [...setCookies],
      };
    },

    async getSession(request) {
      const found = await deps.store.find(sessionIdOf("session_id", request.sessionId));
      if (found.status !== "live") throw new ServiceError("E404_NOT_FOUND");
      return { session: shown(found.session) };
    },

    async listSessions(request) {
      const from = parsePageToken(request.pageToken);
      const limit = pageSizeOf(request.pageSize);
      const page = await deps.store.list(request.subject, limit, from).catch(rejectForeignPosition);
      return { sessions: page.sessions.map(shown), nextPageToken: toPageToken(page.next) };
    },

    async revokeSession(request, context) {
      return {
        revokedCount: await admin.revoke(withAdmin(deps, context), sessionIdOf("session_id", request.sessionId)),
      };
    },

    async revokeSubjectSessions(request, context) {
      const except = request.exceptSessionId ? sessionIdOf("except_session_id", request.exceptSessionId) : undefined;
      return { revokedCount: await admin.revokeSubject(withAdmin(deps, context), request.subject, except) };
    },

    async revokeAllSessions({ issuedBefore }, context) {
      const before = issuedBefore && toMsRoundedUp(issuedBefore);
      const revokedUntil = await admin.revokeAll(withAdmin(deps, context), before);
      return { revokedUntilTime: timestampFromMs(revokedUntil) };
    },

    async elevateSession(request, context) {
      const sid = sessionIdOf("session_id", request.sessionId);
      const authentication = authenticationOf(request, deps.clock());
      if (authentication === undefined) throw invalidRequest("auth_time", "is required");
      const result = await admin.elevate(withAdmin(deps, context), sid, authentication);
      if (result.outcome === "elevated") return { session: shown(result.session) };
      if (result.outcome === "outdated") throw invalidRequest("auth_time", "is before the session's");
      throw new ServiceError("E404_NOT_FOUND");
    },

    async introspectToken(request) {
      const result = await introspect(deps, request.token);
      if (!result.active) return { active: false };
      const { tokenType } = result;
      return { active: true, tokenType, type: TOKEN_TYPES[tokenType], claims: result.claims as JsonObject };
    },

    async *watchRevocations(request, context) {
      try {
        for await (const batch of deps.feed.watch(request.cursor, context.signal)) {
          stillAllowed(context);
          const asleep = setTimeout(context.values.get(callerKey).hangUp, HANG_UP);
          try {
            yield {
              revocations: batch.revocations.map(told),
              cursor: batch.cursor,
              caughtUp: batch.caughtUp,
              asOfTime: timestampFromMs(batch.asOf),
              ...(batch.revokedUntil > 0 && { revokedUntilTime: timestampFromMs(batch.revokedUntil) }),
              revokedKeyIds: [...deps.revokedKeyIds()],
            };
          } finally {
            clearTimeout(asleep);
          }
        }
      } catch (error) {
        if (error instanceof InvalidCursor) throw invalidRequest("cursor", "is not a cursor");
        // Which keys were revoked is known without the store, and whoever asks in an outage must hear it.
        const revokedKeyIds = [...deps.revokedKeyIds()];
        if (error instanceof StoreUnavailable && revokedKeyIds.length > 0)
          yield { cursor: request.cursor, revokedKeyIds };
        throw error;
      }
    },
  };
}
