/** The operations of a session's owner, who holds an access token: log out, list sessions, end other sessions. */
import type { Audit, Requester } from "../audit.ts";
import type { KeyProof } from "../devices/key.ts";
import type { Refused } from "../errors.ts";
import { originOf } from "../events/due-lines.ts";
import type { Origin } from "../events/events.ts";
import type { SessionId } from "../model.ts";
import type { AccessClaims, AccessTokens, RefreshTokens, SessionPage, SessionStore } from "../ports.ts";
import {
  authenticateCookie,
  newestFirst,
  type PresentedCookie,
  type PresentedTokens,
} from "../rotation/presented-cookie.ts";
import { isStale } from "../version.ts";

type Deps<Verb extends keyof SessionStore> = { readonly store: Pick<SessionStore, Verb>; readonly audit: Audit };

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

type Done = { readonly ok: true };
const DONE: Done = { ok: true };
const ABSENT: Refused = { ok: false, reason: "absent" };

/** The session to end does not exist, or belongs to another subject. */
type NotFound = { readonly ok: false; readonly reason: "not_found" };
const NOT_FOUND: NotFound = { ok: false, reason: "not_found" };

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
  const { jkt } = { jkt: undefined, ...(all.cnf as object | undefined) };
  const isAccepted = jkt === undefined ? !needsProof : jkt === proof?.thumbprint;
  if (isAccepted) return authenticated;
  return { ok: false, reason: proof === undefined ? "proof_missing" : "other_key", sid };
}

function requireAudience(authenticated: Authenticated, audiences: ReadonlySet<string>): Authenticated | Refused {
  const { aud, sid } = authenticated.claims;
  return aud.some((each) => audiences.has(each)) ? authenticated : { ok: false, reason: "wrong_audience", sid };
}

/** Returns who acts for the subject of a token (RFC 8693 section 4.1); undefined if nobody does. */
function actorOf({ all }: AccessClaims): string | undefined {
  const { sub } = { sub: undefined, ...(all.act as object | undefined) };
  return typeof sub === "string" ? sub : undefined;
}

/** Describes a request with an access token. The actor of the token is recorded with whatever the request ends. */
function originFor(caller: AccessClaims, requester: Requester): Origin {
  const actor = actorOf(caller);
  return { ...originOf(requester), ...(actor !== undefined && { actor }) };
}

const revoked = (caller: AccessClaims): Refused => ({ ok: false, reason: "revoked", sid: caller.sid });

/** Refuses an access token whose session has ended, or that is stale. An update that comes later does not concern the operation. */
async function requireCurrent({ store }: Pick<Deps<"find">, "store">, caller: AccessClaims): Promise<Done | Refused> {
  const found = await store.find(caller.sid);
  if (!found.ok) return revoked(caller);
  return isStale(caller.all, found.session) ? { ok: false, reason: "stale", sid: caller.sid } : DONE;
}

type LogoutCredential = {
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
  const presented = authenticateCookie(refreshTokens, cookie);
  const byCookie = presented.ok ? presented.tokens.map(({ sid }) => sid) : [];
  if (isExpired && !byCookie.includes(caller.sid)) return { ok: false, reason: "expired", sid: caller.sid };
  return { ok: true, caller, isExpired, byCookie };
}

/**
 * Ends the session of an access token, and the sessions of the same subject whose refresh tokens are in the cookies of the request,
 * because the response clears these cookies. If the store has lost the session, it is marked as ended nevertheless, because its access
 * tokens may still be valid. An expired access token counts only while its session is live.
 */
export async function logout(
  deps: Deps<"end" | "endOwned">,
  { caller, isExpired, byCookie }: LogoutCredential,
  requester: Requester,
): Promise<Done | Refused> {
  const { sid } = caller;
  const by = actorOf(caller);
  const origin = originFor(caller, requester);
  // The other sessions end before the session of the caller: if the store fails in between, the client can still try again.
  for (const other of byCookie) {
    if (other === sid) continue;
    const ended = await deps.store.endOwned(sid, other, "logout", origin);
    if (!ended.ok) continue;
    const { actor = by } = ended;
    deps.audit({ event: "session_ended", sid: other, subject: caller.sub, actor, reason: "logout" }, requester);
  }
  // An access token that has not expired proves that the session existed: its ending is recorded even if the store has lost it.
  const outcome = await deps.store.end(sid, "logout", isExpired ? origin : { ...origin, subject: caller.sub });
  if (!outcome.ok || (isExpired && !outcome.wasLive)) return revoked(caller);
  deps.audit({ event: "session_ended", sid, subject: caller.sub, actor: by, reason: "logout" }, requester);
  return DONE;
}

/**
 * Ends the sessions of the refresh tokens in a cookie, of any generation. Only the tokens' client and an attacker that stole the tokens
 * can present them, and both may end the sessions. Ending a session that has already ended is no error. A session that is bound to a key
 * which each request must prove ends only with that proof.
 */
export async function logoutByCookie(
  deps: Deps<"end" | "find">,
  tokens: PresentedTokens,
  requester: Requester,
  proof?: KeyProof,
): Promise<Done | Refused> {
  const ordered = await newestFirst(deps.store, tokens);
  if (!ordered.ok) return ordered;
  let refusal: Refused | undefined;
  for (const { sid, issuedAt } of ordered.tokens) {
    const outcome = await deps.store.end(sid, "logout", originOf(requester), { issuedAt, proof });
    if (!outcome.ok && outcome.reason !== "already_ended") {
      const { reason, subject, actor } = outcome;
      deps.audit({ event: "bound_key_missing", sid, subject, actor, operation: "logout", reason }, requester);
      refusal = { ok: false, reason, sid };
    }
    if (outcome.ok && outcome.wasLive) {
      const { subject, actor } = outcome;
      deps.audit({ event: "session_ended", sid, subject, actor, reason: "logout" }, requester);
    }
  }
  return refusal ?? DONE;
}

export async function listOwn(
  deps: Pick<Deps<"find" | "list">, "store">,
  caller: AccessClaims,
  limit: number,
  from: string | undefined,
): Promise<{ readonly ok: true; readonly page: SessionPage } | Refused> {
  const current = await requireCurrent(deps, caller);
  return current.ok ? { ok: true, page: await deps.store.list(caller.sub, limit, from) } : current;
}

/** @param target undefined if the client sent a text that cannot be a session's id. The response must be the same as for an unknown id */
export async function revokeOwn(
  deps: Deps<"find" | "endOwned">,
  caller: AccessClaims,
  target: SessionId | undefined,
  requester: Requester,
): Promise<Done | NotFound | Refused> {
  const current = await requireCurrent(deps, caller);
  if (!current.ok) return current;
  if (target === undefined) return NOT_FOUND;
  const outcome = await deps.store.endOwned(caller.sid, target, "revoked_by_owner", originFor(caller, requester));
  if (!outcome.ok) return outcome.reason === "not_found" ? NOT_FOUND : revoked(caller);
  const names = { sid: target, subject: caller.sub, actor: outcome.actor ?? actorOf(caller) };
  deps.audit({ event: "session_ended", ...names, reason: "revoked_by_owner" }, requester);
  return DONE;
}

/** Ends every session of the caller except the one that calls. */
export async function revokeOthers(
  deps: Deps<"find" | "endAll">,
  caller: AccessClaims,
  requester: Requester,
): Promise<{ readonly ok: true; readonly count: number } | Refused> {
  const current = await requireCurrent(deps, caller);
  if (!current.ok) return current;
  const options = { except: caller.sid, actor: caller.sid, origin: originFor(caller, requester) };
  const outcome = await deps.store.endAll(caller.sub, "revoked_others", options);
  if (!outcome.ok) return revoked(caller);
  for (const sid of outcome.ended) {
    const names = { sid, subject: caller.sub, actor: outcome.actors?.get(sid) ?? actorOf(caller) };
    deps.audit({ event: "session_ended", ...names, reason: "revoked_others" }, requester);
  }
  return { ok: true, count: outcome.count };
}
