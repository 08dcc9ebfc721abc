/** What the owner of a session does with an access token of it: lists the sessions of the same subject, and ends others of them. */
import type { Requester } from "./audit.ts";
import { actorOf, originOfCall, refuseRevoked } from "./caller.ts";
import type { Refused } from "./errors.ts";
import type { SessionId } from "./model.ts";
import type { AccessClaims, AuditedStore, SessionPage } from "./ports.ts";
import { isStale } from "./version.ts";

type Done = { readonly ok: true };
const DONE: Done = { ok: true };

/** The session to end does not exist, or belongs to another subject. */
type NotFound = { readonly ok: false; readonly reason: "not_found" };
const NOT_FOUND: NotFound = { ok: false, reason: "not_found" };

/**
 * Refuses an access token whose session has ended, or that is stale. An update of the session after this check does not affect the
 * operation.
 */
async function requireCurrent(
  { store }: Pick<AuditedStore<"find">, "store">,
  caller: AccessClaims,
): Promise<Done | Refused> {
  const found = await store.find(caller.sid);
  if (!found.ok) return refuseRevoked(caller);
  return isStale(caller.all, found.session) ? { ok: false, reason: "stale", sid: caller.sid } : DONE;
}

export async function listOwn(
  deps: Pick<AuditedStore<"find" | "list">, "store">,
  caller: AccessClaims,
  limit: number,
  from: string | undefined,
): Promise<{ readonly ok: true; readonly page: SessionPage } | Refused> {
  const current = await requireCurrent(deps, caller);
  return current.ok ? { ok: true, page: await deps.store.list(caller.sub, limit, from) } : current;
}

/** @param target undefined if the client sent a text that cannot be a session's id. The response must be the same as for an unknown id */
export async function revokeOwn(
  deps: AuditedStore<"find" | "endOwned">,
  caller: AccessClaims,
  target: SessionId | undefined,
  requester: Requester,
): Promise<Done | NotFound | Refused> {
  const current = await requireCurrent(deps, caller);
  if (!current.ok) return current;
  if (target === undefined) return NOT_FOUND;
  const outcome = await deps.store.endOwned(caller.sid, target, "revoked_by_owner", originOfCall(caller, requester));
  if (!outcome.ok) return outcome.reason === "not_found" ? NOT_FOUND : refuseRevoked(caller);
  const names = { sid: target, subject: caller.sub, actor: outcome.actor ?? actorOf(caller) };
  deps.audit({ event: "session_ended", ...names, reason: "revoked_by_owner" }, requester);
  return DONE;
}

/** Ends every session of the caller except the one that calls. */
export async function revokeOthers(
  deps: AuditedStore<"find" | "endAll">,
  caller: AccessClaims,
  requester: Requester,
): Promise<{ readonly ok: true; readonly count: number } | Refused> {
  const current = await requireCurrent(deps, caller);
  if (!current.ok) return current;
  const options = { except: caller.sid, caller: caller.sid, origin: originOfCall(caller, requester) };
  const outcome = await deps.store.endAll(caller.sub, "revoked_others", options);
  if (!outcome.ok) return refuseRevoked(caller);
  for (const { sid, actor = actorOf(caller) } of outcome.ended) {
    const names = { sid, subject: caller.sub, actor };
    deps.audit({ event: "session_ended", ...names, reason: "revoked_others" }, requester);
  }
  return { ok: true, count: outcome.count };
}
