import type { Audit } from "./audit.ts";
import type { NewSession, Session, SessionId } from "./model.ts";
import type { AccessToken, AccessTokens, Random, RefreshTokens, SessionStore } from "./ports.ts";
import { secondsLeft } from "./refresh.ts";

type Deps = {
  readonly store: Pick<SessionStore, "create">;
  readonly refreshTokens: RefreshTokens;
  readonly accessTokens: Pick<AccessTokens, "issue">;
  readonly random: Random;
  readonly audit: Audit;
  /** How many live sessions a subject may have. */
  readonly maxSessionsPerSubject: number;
};

export type Created = {
  readonly session: Session;
  readonly accessToken: AccessToken;
  readonly refreshToken: string;
  /** Seconds until the refresh token is of no more use. */
  readonly secondsLeft: number;
};

/**
 * Creates a session with its first tokens. Beyond the cap the subject's oldest sessions end.
 *
 * @param replaces a session that ends with it
 */
export async function create(deps: Deps, wanted: Omit<NewSession, "sid">, replaces?: SessionId): Promise<Created> {
  const sid = deps.random.sessionId(wanted.subject);
  const nonce = deps.random.nonce();
  const limit = deps.maxSessionsPerSubject;
  const { session, evicted, replaced } = await deps.store.create({ ...wanted, sid }, nonce, limit, replaces);
  const { subject } = session;
  if (replaced && replaces !== undefined) deps.audit({ event: "session_ended", sid: replaces, reason: "replaced" });
  deps.audit({ event: "session_created", sid, subject });
  for (const old of evicted) deps.audit({ event: "session_ended", sid: old, subject, reason: "session_limit" });
  const now = session.createdAt;
  return {
    session,
    accessToken: deps.accessTokens.issue(session, now),
    refreshToken: deps.refreshTokens.mint({ sid, generation: 1, nonce, issuedAt: now }),
    secondsLeft: secondsLeft(session.idleExpiresAt, now),
  };
}
