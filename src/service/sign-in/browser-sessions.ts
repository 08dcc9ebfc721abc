/** Creates, elevates and ends the sessions of browsers that sign in by a provider. */
import type { HttpRequest } from "../../platform/listener/handler.ts";
import { elevate } from "../session/admin/admin.ts";
import { create } from "../session/admin/create.ts";
import { limitOf } from "../session/admin/limit.ts";
import { mayContinue, sessionOfLogin } from "../session/admin/session-of-login.ts";
import { type Requester, UNKNOWN_REQUESTER } from "../session/audit.ts";
import { logoutByRefreshTokens } from "../session/endings/logout.ts";
import { endUpstream } from "../session/endings/upstream.ts";
import { ServiceError } from "../session/errors.ts";
import type { IssuedTokens } from "../session/issued.ts";
import { type Authentication, type NewSession, parseSessionId } from "../session/model.ts";
import type { RefreshTokens, SessionStore } from "../session/ports.ts";
import { authenticateRefreshTokens, newestFirst, type PresentedCookie } from "../session/rotation/presented-cookie.ts";
import { wallMs } from "../session/time.ts";
import type { SessionsOfBrowsers } from "./ports.ts";
import type { User } from "./user.ts";

/** The cookies of a browser. What they are to become are `Set-Cookie` values. */
export type BrowserCookies = {
  /** Returns the refresh tokens of a request. */
  read(request: HttpRequest): PresentedCookie;
  set(issued: IssuedTokens): readonly string[];
  /** Removes refresh tokens of other scopes, if the browser has sent several. */
  removeElsewhere(request: HttpRequest): readonly string[];
  /** Removes what a logout removes. */
  removeAll(request: HttpRequest): readonly string[];
};

type Deps = Parameters<typeof create>[0] &
  Parameters<typeof elevate>[0] & {
    readonly store: SessionStore;
    readonly refreshTokens: RefreshTokens;
    readonly cookies: BrowserCookies;
    readonly requesterOf: (request: HttpRequest) => Requester;
    /** The settings of new sessions. */
    readonly defaults: Parameters<typeof sessionOfLogin>[0];
    readonly audience: string;
    readonly limitPolicies: () => Parameters<typeof limitOf>[0];
    /** Returns claims as JSON text. @throws ServiceError if a session cannot have them */
    readonly claimsText: (claims: User["claims"]) => string;
    /** @throws ServiceError for a session whose cookies would be too large */
    readonly requireCookieSize: (wanted: Omit<NewSession, "sid">) => void;
    readonly log: Record<"warn", (fields: object, message: string) => void>;
  };

export function sessionsOfBrowsers(deps: Deps): SessionsOfBrowsers {
  const { cookies, requesterOf, refreshTokens, store } = deps;
  const presented = (request: HttpRequest) => authenticateRefreshTokens(refreshTokens, cookies.read(request));
  const currentOf = async (request: HttpRequest) => {
    const found = presented(request);
    const ordered = found.ok ? await newestFirst(store, found.tokens) : found;
    return ordered.ok ? ordered.tokens[0].sid : undefined;
  };

  return {
    current: currentOf,

    async create(user, request) {
      const requester = requesterOf(request);
      const wanted = wantedSession(deps, user, requester);
      if (wanted === undefined) return { ok: false, problem: "refused" };
      const [limit, replaces] = [limitOf(deps.limitPolicies(), wanted), await currentOf(request)];
      const created = await create(deps, wanted, requester, { replaces, limit });
      if (!created.ok) {
        return { ok: false, problem: created.reason === "rate_limited" ? "too_many" : "too_many_sessions" };
      }
      return { ok: true, cookies: [...cookies.removeElsewhere(request), ...cookies.set(created)] };
    },

    async elevate(text, user, request) {
      const sid = parseSessionId(text);
      // Another user may have signed in here, or the session has ended.
      if (sid === undefined || sid !== (await currentOf(request))) return false;
      const found = await store.find(sid);
      if (!found.ok || !mayContinue(found.session, user, store.shiftMs({ sid }))) return false;
      // The provider need not report the time, and the user has just come from there.
      const now = Math.floor(Date.now() / 1000);
      const authentication = authenticationOf({ ...user, authTimeSeconds: user.authTimeSeconds ?? now });
      const elevated = await elevate(deps, sid, authentication, true, requesterOf(request));
      return elevated.ok;
    },

    endLogin: ({ createdUntilMs, ...login }, request) =>
      endUpstream(
        deps,
        { ...login, createdUntil: wallMs(createdUntilMs), leftMs: createdUntilMs - Date.now() },
        request === undefined ? UNKNOWN_REQUESTER : requesterOf(request),
      ),

    tokens: {
      isUsed: (issuer, usedToken) => store.isNoted({ issuer, usedToken }),
      use: (issuer, usedToken, lifeMs) => store.note({ issuer, usedToken }, lifeMs),
    },

    async end(request, shown) {
      const found = presented(request);
      if (!found.ok && found.reason !== "ambiguous") {
        return { ok: true, subject: undefined, cookies: cookies.removeAll(request) };
      }
      const current = await currentOf(request);
      const session = current && (await store.find(current));
      const ended = found.ok
        ? await logoutByRefreshTokens(deps, found.tokens, requesterOf(request), undefined, shown)
        : found;
      if (!ended.ok && ended.reason === "unknown_session") return { ok: true, subject: undefined, cookies: [] };
      if (!ended.ok) return { ok: false, cookies: cookies.removeElsewhere(request) };
      const subject = session?.ok ? session.session.subject : undefined;
      return { ok: true, subject, cookies: cookies.removeAll(request) };
    },
  };
}

/** Returns the session of a user; undefined if a session cannot have the claims of the user. */
function wantedSession(deps: Deps, user: User, { userAgent, address }: Requester) {
  const client = {
    userAgent: (userAgent?.() ?? "").slice(0, 512),
    ipAddress: address() ?? "",
    displayName: "",
  };
  try {
    const wanted = sessionOfLogin(deps.defaults, {
      subject: user.subject,
      clientId: deps.audience,
      audience: deps.audience,
      claims: deps.claimsText(user.claims),
      client,
      ...(isKnown(user) && { authentication: authenticationOf(user) }),
      kind: "browser",
      upstream: user.upstream,
      maxLifetimeMs: user.endsAtMs && user.endsAtMs - Date.now(),
    });
    deps.requireCookieSize(wanted);
    return wanted;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    deps.log.warn({ event: "sign_in_failed", reason: "claims" }, error.message);
    return undefined;
  }
}

const isKnown = ({ authTimeSeconds, methods, contextClass }: User) =>
  authTimeSeconds !== undefined || methods.length > 0 || contextClass !== "";

function authenticationOf({ authTimeSeconds = 0, methods, contextClass }: User): Authentication {
  return { time: wallMs(authTimeSeconds * 1000), methods, contextClass };
}
