import { authenticationClaims, isDeviceBound } from "./model.ts";
import type { AccessTokens, RefreshTokens, SessionStore } from "./ports.ts";
import { decide } from "./rotation.ts";

type Deps = {
  readonly store: Pick<SessionStore, "find">;
  readonly refreshTokens: Pick<RefreshTokens, "parse">;
  readonly accessTokens: Pick<AccessTokens, "verify">;
  readonly reuseIntervalMs: number;
  readonly issuer: string;
};

export type Introspection =
  | { readonly active: false }
  | {
      readonly active: true;
      readonly tokenType: "access_token" | "refresh_token";
      readonly claims: Readonly<Record<string, unknown>>;
    };

const INACTIVE: Introspection = { active: false };

/**
 * Whether a token of either kind would be accepted now (RFC 7662 section 2.2). Asks, never rotates:
 * a refresh token that would end its session as reused is inactive, and its session lives on.
 */
export async function introspect(deps: Deps, text: string): Promise<Introspection> {
  const parsed = deps.refreshTokens.parse(text);
  if (parsed.ok) {
    const found = await deps.store.find(parsed.token.sid);
    if (!found.ok) return INACTIVE;
    const { session, rotation, now } = found;
    if (decide(rotation, parsed.token, "", now, deps.reuseIntervalMs).outcome === "reuse") return INACTIVE;
    return {
      active: true,
      tokenType: "refresh_token",
      claims: {
        iss: deps.issuer,
        sub: session.subject,
        aud: session.audience,
        client_id: session.clientId,
        sid: session.sid,
        ...(session.authentication && authenticationClaims(session.authentication)),
        ...(isDeviceBound(session) && { device_bound: true }),
        iat: Math.floor(parsed.token.issuedAt / 1000),
        exp: Math.floor(session.idleExpiresAt / 1000),
      },
    };
  }
  const verified = deps.accessTokens.verify(text);
  if (!verified.ok) return INACTIVE;
  const { sid, all } = verified.claims;
  return (await deps.store.find(sid)).ok ? { active: true, tokenType: "access_token", claims: all } : INACTIVE;
}
