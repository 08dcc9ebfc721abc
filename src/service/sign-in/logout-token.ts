/** Verifies logout tokens: a provider says that it has ended a login (OpenID Connect Back-Channel Logout 1.0 section 2.6). */
import type { JWTPayload } from "jose";
import { createTokenVerifier, invalid, type TokenFailure } from "./signed-token.ts";
import { isShort } from "./user.ts";

export type LogoutToken = {
  readonly jti: string;
  /** Seconds since the epoch. */
  readonly iat: number;
  readonly sessionId?: string;
  readonly subject?: string;
};

const EVENT = "http://schemas.openid.net/event/backchannel-logout";
/** How old a token may be, in seconds. A provider that repeats a request for longer makes a new token. */
export const MAX_AGE_SECONDS = 600;

/** Returns a function that verifies the logout tokens of a provider. @param keys the URL of its key set (`jwks_uri`) */
export function createLogoutVerifier(issuer: string, audience: string, keys: string) {
  const verify = createTokenVerifier(issuer, audience, keys, MAX_AGE_SECONDS);
  return async (text: string): Promise<{ readonly ok: true; readonly token: LogoutToken } | TokenFailure> => {
    const verified = await verify(text);
    return verified.ok ? logoutOf(verified.payload) : verified;
  };
}

function logoutOf({ jti, iat, sid, sub, nonce, events }: JWTPayload & { readonly jti: string; readonly iat: number }) {
  // An ID token has a nonce or no events. It must not pass for a logout token.
  if (nonce !== undefined) return invalid("has_nonce");
  const event = typeof events === "object" && events !== null ? (events as Record<string, unknown>)[EVENT] : undefined;
  if (typeof event !== "object" || event === null) return invalid("no_event");
  if (![sid, sub].every((one) => one === undefined || isShort(one))) return invalid("sid_or_sub");
  if (sid === undefined && sub === undefined) return invalid("no_sid_or_sub");
  const token: LogoutToken = {
    jti,
    iat,
    ...(isShort(sid) && { sessionId: sid }),
    ...(isShort(sub) && { subject: sub }),
  };
  return { ok: true, token } as const;
}
