import type { Requester } from "../audit.ts";
import type { LogoutCredential } from "../authenticate.ts";
import { actorOf, originOfCall, refuseRevoked } from "../caller.ts";
import type { KeyProof } from "../devices/key.ts";
import type { Refused } from "../errors.ts";
import { originOf } from "../events/due-lines.ts";
import type { SessionId } from "../model.ts";
import { type AuditedStore, StoreUnavailable } from "../ports.ts";
import { newestFirst, type PresentedTokens } from "../rotation/presented-cookie.ts";

type Done = { readonly ok: true };
const DONE: Done = { ok: true };
/** The cookie is authentic, but of another session than the one that the caller means. */
const NOT_MEANT: Refused = { ok: false, reason: "unknown_session" };

/**
 * `keepsCookies`: the cookies of the request belong to another subject, who has signed in since, and is still signed in. A session in which
 * the one who signs out acts for that subject does not count, because it must not go on.
 */
type LoggedOut = Done & { readonly keepsCookies: boolean };

/**
 * Ends the session of an access token, and the sessions of the same subject whose refresh tokens are in the cookies of the request,
 * because the response clears these cookies. If the store has lost the session, it is marked as ended nevertheless, because its access
 * tokens may still be valid. An expired access token counts only while its session is live.
 */
export async function logout(
  deps: AuditedStore<"end" | "endOwned" | "find">,
  { caller, isExpired, byCookie }: LogoutCredential,
  requester: Requester,
): Promise<LoggedOut | Refused> {
  const { sid } = caller;
  const by = actorOf(caller);
  const origin = originOfCall(caller, requester);
  const unowned: SessionId[] = [];
  // The other sessions end before the session of the caller: if the store fails in between, the client can still try again.
  for (const other of byCookie) {
    if (other === sid) continue;
    const ended = await deps.store.endOwned(sid, other, "logout", origin);
    if (!ended.ok) {
      if (ended.reason === "not_found") unowned.push(other);
      continue;
    }
    const { actor = by } = ended;
    deps.audit({ event: "session_ended", sid: other, subject: caller.sub, actor, reason: "logout" }, requester);
  }
  // An access token that has not expired proves that the session existed: its ending is recorded even if the store has lost it.
  const outcome = await deps.store.end(sid, "logout", isExpired ? origin : { ...origin, subject: caller.sub });
  if (!outcome.ok || (isExpired && !outcome.wasLive)) return refuseRevoked(caller);
  deps.audit({ event: "session_ended", sid, subject: caller.sub, actor: by, reason: "logout" }, requester);
  const mayKeep = unowned.length > 0 && unowned.length === byCookie.length;
  return { ok: true, keepsCookies: mayKeep && (await areForeign(deps, unowned, by ?? caller.sub)) };
}

/**
 * Returns whether sessions are live and of other people than the one who signs out. If the store cannot say it, they are not: the logout
 * has succeeded already, and whoever signs out must not go on by a cookie that stays.
 */
async function areForeign(
  { store }: AuditedStore<"find">,
  sids: readonly SessionId[],
  person: string,
): Promise<boolean> {
  try {
    const found = await Promise.all(sids.map((sid) => store.find(sid)));
    return found.every((each) => each.ok && each.session.actor?.subject !== person);
  } catch (error) {
    if (error instanceof StoreUnavailable) return false;
    throw error;
  }
}

/**
 * Ends the sessions of refresh tokens, of any generation. Only the tokens' client and an attacker that stole the tokens
 * can present them, and both may end the sessions. Ending a session that has already ended is no error. A session that is bound to a key
 * which each request must prove ends only with that proof.
 * @param meant the session that the caller wants to end, if it knows which: it may be another one than that of a later sign-in, whose
 * cookie the browser has sent. Empty: any
 */
export async function logoutByRefreshTokens(
  deps: AuditedStore<"end" | "find">,
  tokens: PresentedTokens,
  requester: Requester,
  proof?: KeyProof,
  meant = "",
): Promise<Done | Refused> {
  const own = meant === "" ? tokens[0] : tokens.find(({ sid }) => sid === meant);
  if (own === undefined) return NOT_MEANT;
  const ordered = await newestFirst(deps.store, tokens);
  if (!ordered.ok) return ordered;
  // If the session that is meant has ended, a live one beside it may be of another subject, who has signed in since.
  const [newest] = ordered.tokens;
  const isLive = async ({ sid }: { readonly sid: SessionId }) => (await deps.store.find(sid)).ok;
  if (meant !== "" && newest !== own && !(await isLive(own)) && (await isLive(newest))) return NOT_MEANT;
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
