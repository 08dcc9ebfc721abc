import type { Audit, Requester } from "./audit.ts";
import type { Limited, Refused } from "./errors.ts";
import type { SessionId } from "./model.ts";
import type {
  AccessToken,
  AccessTokens,
  Random,
  RateLimit,
  RefreshToken,
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
  readonly accessToken: AccessToken;
  readonly refreshToken: string;
  /** Seconds until the refresh token is of no more use. */
  readonly secondsLeft: number;
};

/** Stands for refresh token cookies with different values in one request. A symbol: any text may be a cookie's value. */
export const AMBIGUOUS: unique symbol = Symbol("ambiguous");

/** The refresh token cookie of a request. */
export type PresentedCookie = string | undefined | typeof AMBIGUOUS;

/** Verifies the refresh token of a cookie. Whether its session is live is for the store to say. */
export function authenticateCookie(
  tokens: Pick<RefreshTokens, "parse">,
  cookie: PresentedCookie,
): RefreshToken | Refused {
  if (cookie === undefined || cookie === "") return { refused: "absent" };
  if (cookie === AMBIGUOUS) return { refused: "ambiguous" };
  const token = tokens.parse(cookie);
  return typeof token === "string" ? { refused: token } : token;
}

/**
 * Trades a refresh token for a fresh access token and the session's current child.
 *
 * Commit first, then sign: a client whose answer is lost asks again and gets `repeat`.
 *
 * @throws StoreUnavailable when the store cannot tell
 */
export async function refresh(
  deps: Deps,
  cookie: PresentedCookie,
  requester: Requester,
): Promise<Refreshed | Refused | Limited> {
  const refuse = (reason: Refused["refused"], sid: SessionId): Refused => ({ refused: reason, sid });
  const token = authenticateCookie(deps.refreshTokens, cookie);
  if ("refused" in token) return token;

  // After the MAC: nobody but its client uses up a session's limit. Before the store: nothing is rotated over the limit.
  const taken = deps.refreshLimit.take(token.sid);
  const retryAfterMs = taken === undefined ? undefined : await taken;
  if (retryAfterMs !== undefined) {
    deps.audit({ event: "rate_limited", limit: "refresh", sid: token.sid }, requester);
    return { limited: "refresh", retryAfterMs };
  }
  const rotated = await rotate(deps, token);
  switch (rotated.outcome) {
    case "reuse":
      deps.audit({ event: "authn_token_reuse", sid: token.sid, subject: rotated.subject }, requester);
      deps.audit({ event: "session_ended", sid: token.sid, subject: rotated.subject, reason: "reuse" }, requester);
      return refuse("reuse", token.sid);
    case "revoked":
    case "idle":
    case "expired":
      return refuse(rotated.outcome, token.sid);
    case "unknown":
      return refuse("unknown_session", token.sid);
    case "repeat":
    case "rotate":
    case "heal":
    case "recover": {
      const { session, child, now } = rotated;
      deps.audit(
        { event: "session_renewed", sid: session.sid, subject: session.subject, outcome: rotated.outcome },
        requester,
      );
      return {
        accessToken: deps.accessTokens.issue(session, now),
        refreshToken: deps.refreshTokens.mint({ sid: session.sid, ...child }),
        secondsLeft: secondsLeft(session.idleExpiresAt, now),
      };
    }
  }
}

/** A store that cannot answer uses up nobody's limit: many tabs that try again in an outage would be held back after it. */
async function rotate({ store, random, refreshLimit }: Deps, token: RefreshToken): Promise<RotateOutcome> {
  try {
    return await store.rotate(token.sid, token, random.nonce());
  } catch (error) {
    refreshLimit.giveBack(token.sid);
    throw error;
  }
}

/** Whole seconds from `now` until `expiry`, both ms. */
export function secondsLeft(expiry: number, now: number): number {
  return Math.max(0, Math.floor((expiry - now) / 1000));
}
