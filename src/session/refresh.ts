import type { Audit, Requester } from "./audit.ts";
import type { Limited, Refused } from "./errors.ts";
import type { SessionId } from "./model.ts";
import type {
  AccessToken,
  AccessTokens,
  Random,
  RateLimit,
  RefreshTokenResult,
  RefreshTokens,
  RotateOutcome,
  SessionStore,
} from "./ports.ts";

type Deps = {
  readonly store: Pick<SessionStore, "rotate">;
  readonly refreshTokens: RefreshTokens;
  readonly accessTokens: Pick<AccessTokens, "issue">;
  readonly random: Pick<Random, "nonce">;
  readonly audit: Audit;
  /** How often one session may be refreshed. */
  readonly refreshLimit: RateLimit;
};

export type Refreshed = {
  readonly ok: true;
  readonly sid: SessionId;
  readonly accessToken: AccessToken;
  readonly refreshToken: string;
  /** Seconds until the refresh token is of no more use. */
  readonly secondsLeft: number;
};

/** Stands for refresh token cookies with different values in one request. A symbol: any text may be a cookie's value. */
export const AMBIGUOUS: unique symbol = Symbol("ambiguous");

/** The refresh token cookie of a request. */
export type PresentedCookie = string | undefined | typeof AMBIGUOUS;

/** Verifies the refresh token of a cookie. The store decides whether its session is live. */
export function authenticateCookie(
  tokens: Pick<RefreshTokens, "parse">,
  cookie: PresentedCookie,
): RefreshTokenResult | Refused {
  if (cookie === undefined || cookie === "") return { ok: false, reason: "absent" };
  if (cookie === AMBIGUOUS) return { ok: false, reason: "ambiguous" };
  return tokens.parse(cookie);
}

/**
 * Trades a refresh token for a fresh access token and the session's current child.
 *
 * Commit first, then sign: a client whose response is lost tries again and gets `repeat`.
 *
 * @throws StoreUnavailable when the store cannot decide
 */
export async function refresh(
  deps: Deps,
  cookie: PresentedCookie,
  requester: Requester,
): Promise<Refreshed | Refused | Limited> {
  const authenticated = authenticateCookie(deps.refreshTokens, cookie);
  if (!authenticated.ok) return authenticated;
  const { token } = authenticated;

  // After the MAC: only its client uses up a session's limit. Before the store: nothing is rotated over the limit.
  const taken = deps.refreshLimit.take(token.sid);
  const retryAfterMs = taken === undefined ? undefined : await taken;
  if (retryAfterMs !== undefined) {
    deps.audit({ event: "rate_limited", limit: "refresh", sid: token.sid }, requester);
    return { ok: false, reason: "rate_limited", limit: "refresh", retryAfterMs };
  }
  let rotated: RotateOutcome;
  try {
    rotated = await deps.store.rotate(token.sid, token, deps.random.nonce());
  } catch (error) {
    // Without a reply the attempt does not count: tabs that retry during an outage would be held back after it.
    deps.refreshLimit.giveBack(token.sid);
    throw error;
  }
  if (!rotated.ok) {
    if (rotated.reason === "reuse") {
      const { subject } = rotated;
      deps.audit({ event: "authn_token_reuse", sid: token.sid, subject }, requester);
      deps.audit({ event: "session_ended", sid: token.sid, subject, reason: "reuse" }, requester);
    }
    return { ok: false, reason: rotated.reason === "unknown" ? "unknown_session" : rotated.reason, sid: token.sid };
  }
  const { outcome, session, child, now } = rotated;
  deps.audit({ event: "session_renewed", sid: session.sid, subject: session.subject, outcome }, requester);
  return {
    ok: true,
    sid: session.sid,
    accessToken: deps.accessTokens.issue(session, now),
    refreshToken: deps.refreshTokens.mint({ sid: session.sid, ...child }),
    secondsLeft: secondsLeft(session.idleExpiresAt, now),
  };
}

/** Whole seconds from `now` until `expiry`, both ms. */
export function secondsLeft(expiry: number, now: number): number {
  return Math.max(0, Math.floor((expiry - now) / 1000));
}
