/** Exchanges an access token for one of the same session that can do less (RFC 8693). It ends with the session at every verifier. */
import type { Audit, Requester } from "../audit.ts";
import type { KeyProof } from "../devices/key.ts";
import type { Limited, Refused } from "../errors.ts";
import { type Audience, audiencesOf, type Session } from "../model.ts";
import type { AccessClaims, AccessToken, AccessTokens, Found, RateLimit, SessionStore } from "../ports.ts";
import { earliest, later, type StoreMs } from "../time.ts";
import { isStale } from "../version.ts";
import { type Actors, MAX_ACTORS, namesOfActors, readActors } from "./actors.ts";
import { audienceFor } from "./audiences.ts";
import { type ExchangePolicy, mayAct } from "./policy.ts";

type Deps = {
  readonly store: Pick<SessionStore, "find">;
  readonly accessTokens: Pick<AccessTokens, "narrow">;
  readonly audit: Audit;
  /** The rate limit of refreshes. It counts the exchanges of each client and session apart from the refreshes of the session. */
  readonly refreshLimit: RateLimit;
  /** The audiences of this service. Their tokens can end sessions, so a client gets one only if its policy names the audience. */
  readonly audiences: ReadonlySet<string>;
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

/** @throws StoreUnavailable */
export async function exchange(
  deps: Deps,
  policy: ExchangePolicy,
  request: ExchangeRequest,
  requester: Requester,
): Promise<Exchanged | TokenRefused | NotAllowed | Limited> {
  const { subject, proof } = request;
  const refused = refuseTokens(policy, request);
  if (refused !== undefined) return refused;
  const audience = targetOf(deps, policy, request);
  if (audience === undefined) return INVALID_TARGET;
  const actors = actorsOf(policy, request);
  if (actors !== undefined && "reason" in actors) return actors;

  const { sid, sub } = subject;
  const limitKey = `${policy.clientId} ${sid}`;
  const retryAfterMs = deps.refreshLimit.take(limitKey);
  if (retryAfterMs !== undefined) {
    deps.audit({ event: "rate_limited", limit: "refresh", sid }, requester);
    return { ok: false, reason: "rate_limited", limit: "refresh", retryAfterMs };
  }
  const found = await findSession(deps, request).catch((error: unknown) => {
    deps.refreshLimit.giveBack(limitKey); // If the store did not reply, the attempt does not count.
    throw error;
  });
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
  deps.audit({ event: "token_exchanged", sid, subject: sub, audiences, actor, ...chain }, requester);
  return { ok: true, accessToken, isKeyBound: proof !== undefined, now };
}

/** Refuses tokens that are for none of the audiences of the policy, or bound to another key than the proof's. */
function refuseTokens(policy: ExchangePolicy, { subject, actor, proof }: ExchangeRequest): TokenRefused | undefined {
  const ofSubject = refuseToken("subject_token", subject, policy, proof);
  return ofSubject ?? (actor && refuseToken("actor_token", actor, { ...policy, mayRebind: false }, proof));
}

function refuseToken(
  parameter: TokenRefused["parameter"],
  { sid, aud, all }: AccessClaims,
  { subjectTokenAudiences, mayRebind }: ExchangePolicy,
  proof: KeyProof | undefined,
): TokenRefused | undefined {
  const refuse = (reason: Refused["reason"]): TokenRefused => ({ ok: false, reason, sid, parameter });
  if (!aud.some((each) => subjectTokenAudiences.includes(each))) return refuse("wrong_audience");
  const { jkt } = { jkt: undefined, ...(all.cnf as object | undefined) };
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
  // If somebody acts for the actor, the chain would not name them.
  if (actor.all.act !== undefined || !mayAct(policy, actor.sub)) return WRONG_ACTOR;
  return { sub: actor.sub, ...(former && { act: former }) };
}

type Live = Extract<Found, { readonly ok: true }>;

/** Finds the session of the exchanged token, unless it or the session of the actor is not live, or one of the tokens is stale. */
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
