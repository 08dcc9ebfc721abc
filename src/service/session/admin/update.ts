/** Changes what live sessions say: their claims and audiences. */
import { attemptWithin } from "../attempts.ts";
import { namesOf, type Requester } from "../audit.ts";
import type { Limited } from "../errors.ts";
import type { Session, SessionId } from "../model.ts";
import type { AuditedStore, RateLimit, SessionChange, SessionStore, UpdateOutcome } from "../ports.ts";

type Deps<Verb extends keyof SessionStore> = AuditedStore<Verb> & {
  /** How often a session may be updated, or elevated with `outdatesTokens`. With that, a change may add a mark to the revocation log. */
  readonly updateLimit: RateLimit;
};

/** Updates a session. If the values are the same as before, nothing changes, and nothing is recorded. */
export async function update(
  deps: Deps<"update">,
  sid: SessionId,
  change: SessionChange,
  requester: Requester,
): Promise<UpdateOutcome | Limited> {
  const { store, audit } = deps;
  const updated = await withinUpdateLimit(deps, sid, requester, () => store.update(sid, change));
  if (updated.ok && updated.isChanged) {
    const { version = 0 } = updated.session;
    const names = namesOf(updated.session);
    const accessTokens = change.outdatesTokens ? "refresh" : "keep";
    audit({ event: "session_updated", ...names, version, accessTokens, fields: fieldsOf(change) }, requester);
  }
  return updated;
}

export function withinUpdateLimit<T>(
  { audit, updateLimit }: Pick<Deps<never>, "audit" | "updateLimit">,
  sid: SessionId,
  requester: Requester,
  step: () => Promise<T>,
): Promise<T | Limited> {
  const about = { limit: "update", sid } as const;
  return attemptWithin({ rateLimit: updateLimit, key: sid, about, requester, audit }, step);
}

function fieldsOf({ claims, audience }: SessionChange) {
  return [
    ...(claims === undefined ? [] : (["claims"] as const)),
    ...(audience === undefined ? [] : (["audiences"] as const)),
  ];
}

/** How many sessions of a subject are listed, and how many are updated at the same time. */
const PAGE = 100;
const AT_ONCE = 8;

/**
 * Updates the sessions that a subject has now, each in one step. Returns how many live sessions have the values now. If it fails, or one
 * session is over its limit, some have been updated, and it can be repeated. @param check throws for a session that must not be updated
 */
export async function updateSubject(
  deps: Deps<"list" | "update">,
  subject: string,
  change: Omit<SessionChange, "ifVersion">,
  requester: Requester,
  check: (session: Session) => void = () => {},
): Promise<{ readonly ok: true; readonly count: number } | Limited> {
  let count = 0;
  let from: string | undefined;
  do {
    const page = await deps.store.list(subject, PAGE, from);
    page.sessions.forEach(check);
    for (let at = 0; at < page.sessions.length; at += AT_ONCE) {
      const some = page.sessions.slice(at, at + AT_ONCE);
      const results = await Promise.all(some.map(({ sid }) => update(deps, sid, change, requester)));
      const limited = results.find((result) => !result.ok && result.reason === "rate_limited");
      if (limited !== undefined) return limited as Limited;
      count += results.filter(({ ok }) => ok).length;
    }
    from = page.next;
  } while (from !== undefined);
  return { ok: true, count };
}
