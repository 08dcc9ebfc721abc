import type { Audit, Requester } from "../audit.ts";
import type { Limited } from "../errors.ts";
import { originOf } from "../events/due-lines.ts";
import type { NewSession, Session, SessionId } from "../model.ts";
import type { AccessToken, AccessTokens, Random, RateLimit, RefreshTokens, SessionStore } from "../ports.ts";
import { secondsLeft } from "../rotation/refresh.ts";

export type CreateLimit = {
  readonly audit: Audit;
  /** How often a session may be created for one subject. */
  readonly createLimit: RateLimit;
};

type Deps = CreateLimit & {
  readonly store: Pick<SessionStore, "create">;
  readonly refreshTokens: RefreshTokens;
  readonly accessTokens: Pick<AccessTokens, "issue">;
  readonly random: Random;
  readonly maxSessionsPerSubject: number;
};

export type Created = {
  readonly ok: true;
  readonly session: Session;
  readonly accessToken: AccessToken;
  readonly refreshToken: string;
  /** The seconds after which the refresh token has expired. */
  readonly secondsLeft: number;
};

/** Creates a session with its first tokens, and ends the session `replaces`. If the subject then has too many, its oldest end. */
export async function create(
  deps: Deps,
  wanted: Omit<NewSession, "sid">,
  requester: Requester,
  replaces?: SessionId,
): Promise<Created | Limited> {
  const sid = deps.random.sessionId(wanted.subject);
  const nonce = deps.random.nonce();
  const limit = deps.maxSessionsPerSubject;
  const result = await withinLimit(deps, wanted.subject, requester, () =>
    deps.store.create({ ...wanted, sid }, nonce, limit, replaces, originOf(requester)),
  );
  if ("reason" in result) return result;
  const { session, evicted, replaced, newDevice } = result;
  const { subject } = session;
  if (replaced && replaces !== undefined)
    deps.audit({ event: "session_ended", sid: replaces, reason: "replaced" }, requester);
  deps.audit({ event: "session_created", sid, subject, session, ...(newDevice && { newDevice }) }, requester);
  for (const old of evicted)
    deps.audit({ event: "session_ended", sid: old, subject, reason: "session_limit" }, requester);
  const now = session.createdAt;
  return {
    ok: true,
    session,
    accessToken: deps.accessTokens.issue(session, now),
    refreshToken: deps.refreshTokens.mint({ sid, generation: 1, nonce, issuedAt: now }),
    secondsLeft: secondsLeft(session.idleExpiresAt, now),
  };
}

/** Creates a session of a subject within its limit. If the store did not respond, the attempt does not count. */
export async function withinLimit<T>(
  { createLimit, audit }: CreateLimit,
  subject: string,
  requester: Requester,
  create: () => Promise<T>,
): Promise<T | Limited> {
  const retryAfterMs = createLimit.take(subject);
  if (retryAfterMs !== undefined) {
    audit({ event: "rate_limited", limit: "create", subject }, requester);
    return { ok: false, reason: "rate_limited", limit: "create", retryAfterMs };
  }
  return create().catch((error: unknown) => {
    createLimit.giveBack(subject);
    throw error;
  });
}
