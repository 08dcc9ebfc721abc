import { attemptWithin } from "../attempts.ts";
import { type Audit, namesOf, type Requester } from "../audit.ts";
import { endIfOver, isOver } from "../endings/upstream.ts";
import type { Limited } from "../errors.ts";
import { originOf } from "../events/due-lines.ts";
import type { IssuedTokens } from "../issued.ts";
import type { NewSession, Session } from "../model.ts";
import type { AccessTokens, CreateOptions, Random, RateLimit, RefreshTokens, SessionStore } from "../ports.ts";
import { type StoreMs, secondsLeft } from "../time.ts";
import type { SessionLimit } from "./limit.ts";

export type CreateLimit = {
  readonly audit: Audit;
  /** How often a session may be created for one subject. */
  readonly createLimit: RateLimit;
};

export type TokenMakers = {
  readonly refreshTokens: Pick<RefreshTokens, "mint">;
  readonly accessTokens: Pick<AccessTokens, "issue">;
};

type Deps = CreateLimit &
  TokenMakers & {
    readonly store: Pick<SessionStore, "create" | "isNoted" | "end">;
    readonly random: Random;
    readonly maxSessionsPerSubject: number;
  };

export type Created = IssuedTokens & { readonly ok: true; readonly session: Session };

/** A limit does not allow the session. Nothing was created, and nothing has ended. */
export type SessionRefused = {
  readonly ok: false;
  readonly reason: "session_limit";
  readonly limit: SessionLimit;
  /** Some of the sessions that the limit counts, the least recently used first. */
  readonly live: readonly Session[];
};

/** How many live sessions of one subject others may use in its place. They are counted apart from those that the subject uses. */
const MAX_ACTOR_SESSIONS = 8;

/** Creates a session with its first tokens. If the subject then has too many, some end. */
export async function create(
  deps: Deps,
  wanted: Omit<NewSession, "sid">,
  requester: Requester,
  { replaces, limit }: Pick<CreateOptions, "replaces" | "limit"> = {},
): Promise<Created | Limited | SessionRefused> {
  const { actor } = wanted;
  const sid = deps.random.sessionId(wanted.subject);
  const nonce = deps.random.nonce();
  const cap = actor === undefined ? deps.maxSessionsPerSubject : MAX_ACTOR_SESSIONS;
  const result = await withinLimit(deps, wanted, requester, async () => {
    // No session is replaced for a login that is over. An outage shows here, before anything has ended.
    const replacing = (await isOver(deps, wanted.upstream)) ? undefined : replaces;
    const options = { cap, limit, replaces: replacing, origin: originOf(requester) };
    return deps.store.create({ ...wanted, sid }, nonce, options);
  });
  if (!result.ok) {
    if (result.reason === "rate_limited") return result;
    if (result.reason === "ended") throw new TypeError("a session without a claim has ended before its creation");
    recordRefusal(deps, wanted, result.limit, requester);
    return { ...result, reason: "session_limit" };
  }
  const { session, evicted, replaced, newDevice } = result;
  const { subject } = session;
  if (replaced !== undefined) deps.audit({ event: "session_ended", ...replaced, reason: "replaced" }, requester);
  deps.audit({ event: "session_created", ...namesOf(session), session, ...(newDevice && { newDevice }) }, requester);
  for (const old of evicted) {
    deps.audit({ event: "session_ended", ...old, subject, reason: "session_limit" }, requester);
  }
  await endIfOver(deps, session, requester);
  return withFirstTokens(deps, session, nonce, session.createdAt);
}

/** Returns a created session with its first tokens. @param nonce that of its first refresh token */
export function withFirstTokens(makers: TokenMakers, session: Session, nonce: string, now: StoreMs): Created {
  const { sid, createdAt: issuedAt } = session;
  return {
    ok: true,
    sid,
    session,
    accessToken: makers.accessTokens.issue(session, now),
    refreshToken: makers.refreshTokens.mint({ sid, generation: 1, nonce, issuedAt }),
    secondsLeft: secondsLeft(session.idleExpiresAt, now),
    isPersistent: session.persistent !== false,
  };
}

/** Records a session that a limit refused. The attempt does not count. */
export function recordRefusal(
  { createLimit, audit }: CreateLimit,
  wanted: Pick<NewSession, "subject" | "actor" | "clientId">,
  { scope, maxSessions }: SessionLimit,
  requester: Requester,
): void {
  const { subject, clientId } = wanted;
  createLimit.giveBack(keyOf(wanted));
  audit({ event: "session_refused", subject, clientId, scope, maxSessions }, requester);
}

/** Creates a session within the limit of its subject, or of its actor. */
export function withinLimit<T>(
  { createLimit, audit }: CreateLimit,
  wanted: Pick<NewSession, "subject" | "actor">,
  requester: Requester,
  create: () => Promise<T>,
): Promise<T | Limited> {
  const about = { limit: "create", subject: wanted.subject, actor: wanted.actor?.subject } as const;
  return attemptWithin({ rateLimit: createLimit, key: keyOf(wanted), about, requester, audit }, create);
}

/** Returns what a creation is counted under: its subject, or whoever acts in its place. */
const keyOf = ({ subject, actor }: Pick<NewSession, "subject" | "actor">) => actor?.subject ?? subject;
