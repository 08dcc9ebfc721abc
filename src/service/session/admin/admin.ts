/** The operations of the admin API on sessions of any subject. */
import { namesOf, type Requester } from "../audit.ts";
import type { Limited } from "../errors.ts";
import { originOf } from "../events/due-lines.ts";
import type { Authentication, Session, SessionId } from "../model.ts";
import type { AuditedStore, ElevateOutcome, ForgetOutcome, SessionPage, SessionStore } from "../ports.ts";
import type { StoreMs } from "../time.ts";
import type { SessionFilter } from "./filter.ts";
import { withinUpdateLimit } from "./update.ts";

/** Returns a session, or undefined if it is not live. */
export async function find(store: Pick<SessionStore, "find">, sid: SessionId): Promise<Session | undefined> {
  const found = await store.find(sid);
  return found.ok ? found.session : undefined;
}

/** Lists the live sessions of a subject, or of all subjects if it is undefined. @throws InvalidCursor, StoreUnavailable */
export async function list(
  store: Pick<SessionStore, "list" | "listAll">,
  subject: string | undefined,
  limit: number,
  from: string | undefined,
  filter: SessionFilter,
): Promise<SessionPage> {
  return subject === undefined ? store.listAll(limit, from, filter) : store.list(subject, limit, from, filter);
}

/** Ends one session. Returns how many sessions were live and have ended: 0 or 1. */
export async function revoke(deps: AuditedStore<"end">, sid: SessionId, requester: Requester): Promise<number> {
  const outcome = await deps.store.end(sid, "revoked_by_admin", originOf(requester));
  // If the session is not live, it is not known whether it ever existed, so nothing is recorded.
  if (!outcome.ok || !outcome.wasLive) return 0;
  const { subject, actor } = outcome;
  deps.audit({ event: "session_ended", sid, subject, actor, reason: "revoked_by_admin" }, requester);
  return 1;
}

/** Ends the sessions that a subject has now. Sessions of later logins stay. */
export async function revokeSubject(
  deps: AuditedStore<"endAll">,
  subject: string,
  except: SessionId | undefined,
  requester: Requester,
): Promise<number> {
  const spared = except === undefined ? {} : { except };
  const outcome = await deps.store.endAll(subject, "revoked_subject", { ...spared, origin: originOf(requester) });
  if (!outcome.ok) throw new Error("no actor was named");
  for (const one of outcome.ended) {
    deps.audit({ event: "session_ended", ...one, subject, reason: "revoked_subject" }, requester);
  }
  return outcome.count;
}

/** Ends every session that was created before a time, or all that exist now. Returns the time of creation up to which they ended. */
export async function revokeAll(
  deps: AuditedStore<"revokeAll">,
  createdBefore: StoreMs | undefined,
  requester: Requester,
): Promise<StoreMs> {
  const revokedUntil = await deps.store.revokeAll(createdBefore, originOf(requester));
  deps.audit({ event: "all_sessions_ended", revokedUntil }, requester);
  return revokedUntil;
}

/** Records a later authentication of a session's user. @param outdatesTokens whether access tokens from before are stale from now on */
export async function elevate(
  deps: AuditedStore<"elevate"> & Parameters<typeof withinUpdateLimit>[0],
  sid: SessionId,
  authentication: Authentication,
  outdatesTokens: boolean,
  requester: Requester,
): Promise<ElevateOutcome | Limited> {
  const step = () => deps.store.elevate(sid, authentication, outdatesTokens);
  const result = await (outdatesTokens ? withinUpdateLimit(deps, sid, requester, step) : step());
  if (result.ok) {
    const { methods, contextClass } = authentication;
    const accessTokens = outdatesTokens ? { accessTokens: "refresh" as const } : {};
    const names = namesOf(result.session);
    deps.audit({ event: "session_elevated", ...names, methods, contextClass, ...accessTokens }, requester);
  }
  return result;
}

type ForgetDeps = AuditedStore<"endAll" | "forget"> & {
  /** Resolves when the signals of a subject are delivered, or after a limited time. Absent if there are no signals. */
  readonly delivered?: ((subject: string) => Promise<void>) | undefined;
};

type Forgotten = ForgetOutcome & { readonly sessions: number };

/**
 * Ends the sessions that a subject has now, waits for the delivery of their signals, and then removes what the store keeps of the subject.
 * No record of this names the subject: the endings write no due records, and their events are not kept.
 */
export async function forgetSubject(
  { store, audit, delivered }: ForgetDeps,
  subject: string,
  requester: Requester,
): Promise<Forgotten> {
  const outcome = await store.endAll(subject, "revoked_subject");
  if (!outcome.ok) throw new Error("no actor was named");
  for (const { sid } of outcome.ended) audit({ event: "session_ended", sid, reason: "revoked_subject" }, requester);
  await delivered?.(subject);
  const forgotten = { sessions: outcome.count, ...(await store.forget(subject)) };
  audit({ event: "subject_forgotten", ...forgotten }, requester);
  return forgotten;
}
