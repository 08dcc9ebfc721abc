/** Exchanges an access token for one of the same session that can do less (RFC 8693). It ends with the session at every verifier. */
import { attemptWithin } from "../attempts.ts";
import type { Audit, Requester } from "../audit.ts";
import { boundKeyOf, type KeyProof } from "../devices/key.ts";
import type { Limited, Refused } from "../errors.ts";
import { type Audience, audienceFor, audiencesOf, type Session } from "../model.ts";
import type { AccessClaims, AccessToken, AccessTokens, Actors, Found, RateLimit, SessionStore } from "../ports.ts";
import { earliest, later, type StoreMs } from "../time.ts";
import { isStale } from "../version.ts";

type Deps = {
  readonly store: Pick<SessionStore, "find">;
  readonly accessTokens: Pick<AccessTokens, "narrow">;
  readonly audit: Audit;
  /** The rate limit of refreshes. It counts the exchanges of each client and session apart from the refreshes of the session. */
  readonly refreshLimit: RateLimit;
  /** The audiences of this service. Their tokens can end sessions, so a client gets one only if its policy names the audience. */
  readonly audiences: ReadonlySet<string>;
};

/** What an operator allows one client that exchanges access tokens. */
export type ExchangePolicy = {
  /** The name of the client's credential. */
  readonly clientId: string;
  /** The client may exchange tokens that are for one of these audiences. */
  readonly subjectTokenAudiences: readonly string[];
  /** What the client may ask for; if it is undefined, those that the exchanged token has, except those of this service. */
  readonly audiences: readonly string[] | undefined;
  /** The names of the claims that the new token keeps, beside those that every token has. */
  readonly claims: readonly string[];
  /** How long a new token may live at most, in ms; if it is undefined, as long as the exchanged one. */
  readonly maxLifetimeMs: number | undefined;
  /** The subjects that may act for others. A text that ends in a star stands for all subjects that begin with the text before it. */
  readonly mayAct: readonly string[];
  /** Whether the client may exchange a token that is bound to another key than its own. The new token is then bound to the client's key. */
  readonly mayRebind: boolean;
};

export type ExchangeRequest = {
  /** The claims of the token to exchange, which is verified. */
  readonly subject: AccessClaims;
  /** The claims of the verified token of whoever acts for the subject, if there is one. */
  readonly actor?: AccessClaims | undefined;
  /** The audiences that the new token is to have; if there are none, all that are allowed of the exchanged one. */
  readonly audiences: readonly string[];
  readonly proof?: KeyProof | undefined;
};

type Exchanged = {
  readonly ok: true;
  readonly accessToken: AccessToken;
  readonly isKeyBound: boolean;
  readonly now: StoreMs;
};

/** A token of the request cannot be exchanged. */
type TokenRefused = Refused & { readonly parameter: "subject_token" | "actor_token" };

/** `invalid_target`: the client may not have tokens for these audiences. `wrong_actor`: the actor may not act, or there are too many. */
type NotAllowed = { readonly ok: false; readonly reason: "invalid_target" | "wrong_actor" };
const INVALID_TARGET: NotAllowed = { ok: false, reason: "invalid_target" };
const WRONG_ACTOR: NotAllowed = { ok: false, reason: "wrong_actor" };

/** How many parties a token may name that act for its subject. */
const MAX_ACTORS = 4;

/** @throws StoreUnavailable */
export async function exchange(
  deps: Deps,
  policy: ExchangePolicy,
  request: ExchangeRequest,
  requester: Requester,
): Promise<Exchanged | TokenRefused | NotAllowed | Limited> {
  const { subject, proof } = request;
  const refused = refusalOfTokens(policy, request);
  if (refused !== undefined) return refused;
  const audience = targetOf(deps, policy, request);
  if (audience === undefined) return INVALID_TARGET;
  const actors = actorsOf(policy, request);
  if (actors !== undefined && "reason" in actors) return actors;

  const { sid, sub } = subject;
  const { audit, refreshLimit: rateLimit } = deps;
  const key = `${policy.clientId} ${sid}`;
  const about = { limit: "refresh", sid } as const;
  const found = await attemptWithin({ rateLimit, key, about, requester, audit }, () => findSession(deps, request));
  if (!found.ok) return found;
  const { session, now } = found;
  const accessToken = deps.accessTokens.narrow(subject, now, {
    audience,
    clientId: policy.clientId,
    claims: policy.claims,
    act: actors,
    cnf: proof && { jkt: proof.thumbprint },
    endsAt: endOf(policy, session, now),
  });
  const audiences = audiencesOf(audience);
  const [actor, ...former] = namesOfActors(actors);
  const chain = former.length > 0 && { formerActors: former };
  audit({ event: "token_exchanged", sid, subject: sub, audiences, actor, ...chain }, requester);
  return { ok: true, accessToken, isKeyBound: proof !== undefined, now };
}

/** Returns the refusal of tokens that are for none of the audiences of the policy, or bound to another key than the proof's. */
function refusalOfTokens(policy: ExchangePolicy, { subject, actor, proof }: ExchangeRequest): TokenRefused | undefined {
  const ofSubject = refusalOfToken("subject_token", subject, policy, proof);
  return ofSubject ?? (actor && refusalOfToken("actor_token", actor, { ...policy, mayRebind: false }, proof));
}

function refusalOfToken(
  parameter: TokenRefused["parameter"],
  { sid, aud, all }: AccessClaims,
  { subjectTokenAudiences, mayRebind }: ExchangePolicy,
  proof: KeyProof | undefined,
): TokenRefused | undefined {
  const refuse = (reason: Refused["reason"]): TokenRefused => ({ ok: false, reason, sid, parameter });
  if (!aud.some((each) => subjectTokenAudiences.includes(each))) return refuse("wrong_audience");
  const jkt = boundKeyOf(all);
  if (jkt === undefined || jkt === proof?.thumbprint) return undefined;
  // The new token is bound to the key of the proof. So a token that is bound to a key never becomes one that is not.
  if (proof === undefined) return refuse("proof_missing");
  return mayRebind ? undefined : refuse("other_key");
}

/** Returns who acts for the subject with the new token: the actor of the request, for those that acted before. */
function actorsOf(policy: ExchangePolicy, { subject, actor }: ExchangeRequest): Actors | NotAllowed | undefined {
  const { act } = subject.all;
  const former = readActors(act, actor === undefined ? MAX_ACTORS : MAX_ACTORS - 1);
  if (act !== undefined && former === undefined) return WRONG_ACTOR;
  if (actor === undefined) return former;
  // If somebody acts for the actor, the request is refused, because the chain of the new token would not name that party.
  if (actor.all.act !== undefined || !mayAct(policy, actor.sub)) return WRONG_ACTOR;
  return { sub: actor.sub, ...(former && { act: former }) };
}

function mayAct({ mayAct: subjects }: ExchangePolicy, subject: string): boolean {
  return subjects.some((each) => (each.endsWith("*") ? subject.startsWith(each.slice(0, -1)) : subject === each));
}

/** Returns the parties that a claim names; undefined if it is not such a claim, or names too many. */
function readActors(claim: unknown, most = MAX_ACTORS): Actors | undefined {
  if (most === 0) return undefined;
  const { sub, act } = (claim ?? {}) as { readonly sub?: unknown; readonly act?: unknown };
  if (typeof sub !== "string") return undefined;
  if (act === undefined) return { sub };
  const former = readActors(act, most - 1);
  return former && { sub, act: former };
}

/** Returns the names of those that act, the one that acts for the others first. */
function namesOfActors(actors: Actors | undefined): readonly string[] {
  return actors === undefined ? [] : [actors.sub, ...namesOfActors(actors.act)];
}

type Live = Extract<Found, { readonly ok: true }>;

/**
 * Returns the session of the exchanged token. Refuses the request if that session or the actor's is not live, or if one of the tokens is
 * stale.
 */
async function findSession({ store }: Deps, { subject, actor }: ExchangeRequest): Promise<Live | TokenRefused> {
  const found = await findLive(store, "subject_token", subject);
  if (!found.ok || actor === undefined) return found;
  const foundActor = await findLive(store, "actor_token", actor);
  return foundActor.ok ? found : foundActor;
}

async function findLive(
  store: Deps["store"],
  parameter: TokenRefused["parameter"],
  { sid, all }: AccessClaims,
): Promise<Live | TokenRefused> {
  const found = await store.find(sid);
  const refuse = (reason: Refused["reason"]): TokenRefused => ({ ok: false, reason, sid, parameter });
  if (!found.ok) return refuse(found.reason === "unknown" ? "unknown_session" : found.reason);
  return isStale(all, found.session) ? refuse("stale") : found;
}

/** Returns the audience of the new token; undefined if the client may not have a token for what it asks for. */
function targetOf(
  { audiences: own }: Deps,
  { audiences: allowed }: ExchangePolicy,
  { subject, audiences }: ExchangeRequest,
): Audience | undefined {
  const isAllowed = (audience: string) =>
    allowed?.includes(audience) ?? (subject.aud.includes(audience) && !own.has(audience));
  return audienceFor(audiences.length > 0 ? audiences : subject.aud.filter(isAllowed), isAllowed);
}

/** Returns when the new token ends at the latest. */
function endOf({ maxLifetimeMs }: ExchangePolicy, { idleExpiresAt }: Session, now: StoreMs): StoreMs {
  return maxLifetimeMs === undefined ? idleExpiresAt : earliest(idleExpiresAt, later(now, maxLifetimeMs));
}
