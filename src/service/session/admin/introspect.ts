import { isProofKey } from "../devices/key.ts";
import type { Session } from "../model.ts";
import type { AccessTokens, RefreshTokens, SessionStore } from "../ports.ts";
import { decide } from "../rotation/rotation.ts";
import type { StoreMs } from "../time.ts";
import { isStale } from "../version.ts";

type Deps = {
  readonly store: Pick<SessionStore, "find">;
  readonly refreshTokens: Pick<RefreshTokens, "parse">;
  readonly accessTokens: Pick<AccessTokens, "verify">;
  readonly reuseIntervalMs: number;
};

export type Introspection =
  | { readonly active: false }
  | {
      readonly active: true;
      readonly tokenType: "access_token";
      readonly claims: Readonly<Record<string, unknown>>;
    }
  | {
      readonly active: true;
      readonly tokenType: "refresh_token";
      readonly session: Session;
      readonly issuedAt: StoreMs;
    };

const INACTIVE: Introspection = { active: false };

/**
 * Returns whether an access token or a refresh token would be accepted now (RFC 7662 section 2.2). Nothing is rotated. A refresh token
 * that was used before, so that a refresh with it would end the session, is inactive. The introspection does not end the session. If a
 * session has a key, or requires one, the token is active if it would be accepted with a proof of the key.
 */
export async function introspect(deps: Deps, text: string): Promise<Introspection> {
  const parsed = deps.refreshTokens.parse(text);
  if (parsed.ok) {
    const { token } = parsed;
    const found = await deps.store.find(token.sid);
    if (!found.ok) return INACTIVE;
    const { session, rotation, now } = found;
    const isHeld = session.device !== undefined && isProofKey(session.device);
    if (decide(rotation, token, "", now, deps.reuseIntervalMs, isHeld).outcome === "reuse") return INACTIVE;
    return { active: true, tokenType: "refresh_token", session, issuedAt: token.issuedAt };
  }
  const verified = deps.accessTokens.verify(text);
  if (!verified.ok) return INACTIVE;
  const { sid, all } = verified.claims;
  const found = await deps.store.find(sid);
  if (!found.ok || isStale(all, found.session)) return INACTIVE;
  return { active: true, tokenType: "access_token", claims: all };
}
