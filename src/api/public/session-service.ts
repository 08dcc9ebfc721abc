/** auth.v1.SessionService: message ↔ domain, and nothing decided here. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import type { Audit } from "../../session/audit.ts";
import { type Limited, type Refused, ServiceError } from "../../session/errors.ts";
import { parseSessionId } from "../../session/model.ts";
import * as owner from "../../session/owner.ts";
import type {
  AccessClaims,
  AccessTokens,
  Random,
  RateLimit,
  RefreshTokens,
  SessionStore,
} from "../../session/ports.ts";
import { refresh } from "../../session/refresh.ts";
import { bearerOf } from "../bearer.ts";
import { withCaller } from "../caller.ts";
import { rateLimited, SHARED_ERRORS } from "../errors/connect-errors.ts";
import { timesOf } from "../messages.ts";
import { pageSizeOf, parsePageToken, rejectForeignPosition, toPageToken } from "../page.ts";
import { refusal } from "../refusal.ts";
import type { RefreshCookie } from "./cookie.ts";

export type SessionServiceDeps = {
  readonly store: SessionStore;
  readonly refreshTokens: RefreshTokens;
  readonly accessTokens: AccessTokens;
  readonly random: Random;
  readonly audit: Audit;
  /** Whose access tokens may act on sessions. */
  readonly audiences: ReadonlySet<string>;
  readonly cookie: RefreshCookie;
  /** By session. */
  readonly refreshLimit: RateLimit;
  /** By address. */
  readonly failureLimit: RateLimit;
};

/** Operations without a bearer credential. */
const BY_COOKIE = new Set(["Refresh", "LogoutByCookie"]);

export function sessionService(deps: SessionServiceDeps): ServiceImpl<typeof SessionService> {
  const { cookie } = deps;

  /** The result, or a rejection. The reason goes to the audit; the caller gets one error for all of them. */
  function granted<T>(result: T | Refused | Limited, context: HandlerContext): T | Promise<never> {
    if (typeof result !== "object" || result === null) return result as T;
    if ("refused" in result) return refuse(result as Refused, context);
    if ("limited" in result) throw rateLimited((result as Limited).retryAfterMs);
    return result as T;
  }

  async function refuse({ refused: reason, sid }: Refused, context: HandlerContext): Promise<never> {
    const operation = context.method.name;
    const { noCredential, invalidToken } = SHARED_ERRORS;
    const error = reason === "absent" || BY_COOKIE.has(operation) ? noCredential : invalidToken;
    throw await refusal(deps, { event: "authn_failed", operation, reason, sid }, context, error);
  }

  const caller = (context: HandlerContext): AccessClaims | Promise<never> =>
    granted(owner.authenticate(deps, bearerOf(context.requestHeader)), context);
  const presentedCookie = (context: HandlerContext) => cookie.read(context.requestHeader.get("cookie"));

  return {
    async refresh(_request, context) {
      const refreshed = await granted(await refresh(withCaller(deps, context), presentedCookie(context)), context);
      setCookies(context, cookie.set(refreshed.refreshToken, refreshed.secondsLeft));
      return { data: { accessToken: refreshed.accessToken.token } };
    },

    async logout(_request, context) {
      const bearer = bearerOf(context.requestHeader);
      await granted(await owner.logout(withCaller(deps, context), bearer, presentedCookie(context)), context);
      setCookies(context, cookie.clear());
      return { data: {} };
    },

    async logoutByCookie(_request, context) {
      await granted(await owner.logoutByCookie(withCaller(deps, context), presentedCookie(context)), context);
      setCookies(context, cookie.clear());
      return { data: {} };
    },

    async listSessions(request, context) {
      const claims = await caller(context);
      const limit = pageSizeOf(request.pageSize);
      const from = parsePageToken(request.pageToken);
      const page = await granted(await owner.listOwn(deps, claims, limit, from).catch(rejectForeignPosition), context);
      const sessions = page.sessions.map((session) => ({
        sessionId: session.sid,
        ...session.client,
        ...timesOf(session),
        current: session.sid === claims.sid,
      }));
      return { data: { sessions, nextPageToken: toPageToken(page.next) } };
    },

    async revokeSession(request, context) {
      const claims = await caller(context);
      const target = parseSessionId(request.sessionId);
      const outcome = await granted(await owner.revokeOwn(withCaller(deps, context), claims, target), context);
      if (outcome === "not_found") throw new ServiceError("E404_NOT_FOUND");
      return { data: {} };
    },

    async revokeOtherSessions(_request, context) {
      const claims = await caller(context);
      const { count } = await granted(await owner.revokeOthers(withCaller(deps, context), claims), context);
      return { data: { revokedCount: count } };
    },
  };
}

function setCookies({ responseHeader }: HandlerContext, values: readonly string[]): void {
  for (const value of values) responseHeader.append("set-cookie", value);
}
