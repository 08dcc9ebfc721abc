import type { Audit } from "./audit.ts";
import type { Refused } from "./errors.ts";
import type { AccessToken, AccessTokens, Random, RefreshTokens, SessionStore } from "./ports.ts";

type Deps = {
  readonly store: Pick<SessionStore, "rotate">;
  readonly refreshTokens: RefreshTokens;
  readonly accessTokens: Pick<AccessTokens, "issue">;
  readonly random: Pick<Random, "nonce">;
  readonly audit: Audit;
};

export type Refreshed = {
  readonly accessToken: AccessToken;
  readonly refreshToken: string;
  /** Seconds until the refresh token is of no more use. */
  readonly secondsLeft: number;
};

/**
 * Trades a refresh token for a fresh access token and the session's current child.
 *
 * Commit first, then sign: a client whose answer is lost asks again and gets `repeat`.
 *
 * @param cookie the refresh token cookie as it came in
 * @throws StoreUnavailable when the store cannot tell
 */
export async function refresh(deps: Deps, cookie: string | undefined | "ambiguous"): Promise<Refreshed | Refused> {
  const refuse = (reason: Refused["refused"], sid?: Refused["sid"]): Refused => ({ refused: reason, sid });
  if (cookie === undefined || cookie === "") return refuse("absent");
  if (cookie === "ambiguous") return refuse("ambiguous");

  const token = deps.refreshTokens.parse(cookie);
  if (typeof token === "string") return refuse(token);

  const rotated = await deps.store.rotate(token.sid, token, deps.random.nonce());
  switch (rotated.outcome) {
    case "reuse":
      deps.audit({ event: "authn_token_reuse", sid: token.sid, subject: rotated.subject });
      deps.audit({ event: "session_ended", sid: token.sid, subject: rotated.subject, reason: "reuse" });
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
      deps.audit({ event: "session_renewed", sid: session.sid, subject: session.subject, outcome: rotated.outcome });
      return {
        accessToken: deps.accessTokens.issue(session, now),
        refreshToken: deps.refreshTokens.mint({ sid: session.sid, ...child }),
        secondsLeft: secondsLeft(session.idleExpiresAt, now),
      };
    }
  }
}

/** Whole seconds from `now` until `expiry`, both ms. */
export function secondsLeft(expiry: number, now: number): number {
  return Math.max(0, Math.floor((expiry - now) / 1000));
}
