/** Verifies the access token of a call without the store: its signature, its audience, and the key that it is bound to. */
import { boundKeyOf, type KeyProof } from "./devices/key.ts";
import type { Refused } from "./errors.ts";
import type { SessionId } from "./model.ts";
import type { AccessClaims, AccessTokens, RefreshTokens } from "./ports.ts";
import { authenticateRefreshTokens, type PresentedCookie } from "./rotation/presented-cookie.ts";

type Credentials = {
  readonly accessTokens: Pick<AccessTokens, "verify">;
  readonly refreshTokens: Pick<RefreshTokens, "parse">;
  /** The audiences whose access tokens may act on sessions. A token that was issued only for other audiences may not. */
  readonly audiences: ReadonlySet<string>;
};

export type PresentedAccessToken = {
  /** Undefined if the request has no access token. */
  readonly token: string | undefined;
  /** The proof that came with the access token. A token that is bound to a key needs it. */
  readonly proof?: KeyProof | undefined;
  /** Whether a token that is not bound to the key of a proof is refused, as the authentication scheme DPoP requires. */
  readonly needsProof?: boolean;
};

type Authenticated = { readonly ok: true; readonly claims: AccessClaims };

const ABSENT: Refused = { ok: false, reason: "absent" };

/** Verifies an access token. The store decides whether its session is live, in the operation that acts on the session. */
export function authenticate(
  { accessTokens, audiences }: Pick<Credentials, "accessTokens" | "audiences">,
  presented: PresentedAccessToken,
): Authenticated | Refused {
  if (presented.token === undefined) return ABSENT;
  const verified = accessTokens.verify(presented.token);
  if (!verified.ok) return { ok: false, reason: verified.reason };
  return requireKey(requireAudience(verified, audiences), presented);
}

/** Refuses a token that is bound to another key than the proof's (RFC 9449 section 7.1), or to none although a proof is required. */
function requireKey(
  authenticated: Authenticated | Refused,
  { proof, needsProof = false }: PresentedAccessToken,
): Authenticated | Refused {
  if (!authenticated.ok) return authenticated;
  const { all, sid } = authenticated.claims;
  const jkt = boundKeyOf(all);
  const isAccepted = jkt === undefined ? !needsProof : jkt === proof?.thumbprint;
  if (isAccepted) return authenticated;
  return { ok: false, reason: proof === undefined ? "proof_missing" : "other_key", sid };
}

function requireAudience(authenticated: Authenticated, audiences: ReadonlySet<string>): Authenticated | Refused {
  const { aud, sid } = authenticated.claims;
  return aud.some((each) => audiences.has(each)) ? authenticated : { ok: false, reason: "wrong_audience", sid };
}

export type LogoutCredential = {
  readonly ok: true;
  readonly caller: AccessClaims;
  /** Whether the access token has expired. If it has, `byCookie` contains the session of the caller. */
  readonly isExpired: boolean;
  /** The sessions of the refresh tokens in the request. */
  readonly byCookie: readonly SessionId[];
};

/**
 * Verifies the credential of a logout: an access token, or an expired one together with a refresh token of the same session. The expired
 * token is accepted because a client that gets a rejection would assume that it is logged out.
 */
export function authenticateLogout(
  { accessTokens, refreshTokens, audiences }: Credentials,
  access: PresentedAccessToken,
  cookie: PresentedCookie,
): LogoutCredential | Refused {
  if (access.token === undefined) return ABSENT;
  const verified = accessTokens.verify(access.token);
  const isExpired = !verified.ok && verified.reason === "expired";
  if (!verified.ok && !isExpired) return verified;
  const { claims: caller } = verified;
  const authenticated = requireKey(requireAudience({ ok: true, claims: caller }, audiences), access);
  if (!authenticated.ok) return authenticated;
  const presented = authenticateRefreshTokens(refreshTokens, cookie);
  const byCookie = presented.ok ? presented.tokens.map(({ sid }) => sid) : [];
  if (isExpired && !byCookie.includes(caller.sid)) return { ok: false, reason: "expired", sid: caller.sid };
  return { ok: true, caller, isExpired, byCookie };
}
