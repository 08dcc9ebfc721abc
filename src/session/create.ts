import type { Audit } from "./audit.ts";
import type { AccessToken, AccessTokens, Random, RefreshTokens, SessionStore } from "./ports.ts";
import { secondsLeft } from "./refresh.ts";
import type { NewSession, Session } from "./words.ts";

type Needs = {
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

/** Creates a session with its first tokens. Beyond the cap the subject's oldest sessions end. */
export async function create(needs: Needs, wanted: Omit<NewSession, "sid">): Promise<Created> {
  const sid = needs.random.sessionId(wanted.subject);
  const nonce = needs.random.nonce();
  const { session, evicted } = await needs.store.create({ ...wanted, sid }, nonce, needs.maxSessionsPerSubject);
  const { subject } = session;
  needs.audit({ event: "session_created", sid, subject });
  for (const old of evicted) needs.audit({ event: "session_ended", sid: old, subject, reason: "session_limit" });
  const now = session.createdAt;
  return {
    session,
    accessToken: needs.accessTokens.issue(session, now),
    refreshToken: needs.refreshTokens.mint({ sid, generation: 1, nonce, issuedAt: now }),
    secondsLeft: secondsLeft(session.idleExpiresAt, now),
  };
}
