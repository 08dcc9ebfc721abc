/** Ends the sessions that came from a login at an identity provider, when the provider says that the login is over. */
import type { Audit, Requester } from "../audit.ts";
import { forEachConcurrently } from "../concurrently.ts";
import { originOf } from "../events/due-lines.ts";
import { loginsOf, type Session, type SessionId, type Upstream } from "../model.ts";
import type { SessionStore } from "../ports.ts";
import { toWallClock, type WallMs } from "../time.ts";

/** What a provider has ended: one of its sessions, or all sessions of a user. At least one of the two is present. */
type EndedLogin = Upstream & {
  /** Only sessions that were created up to this time end, so that a repeated message of the provider does not end a later login. */
  readonly createdUntil: WallMs;
  /** How long it is until `createdUntil`, in ms; 0 or less if that time has passed. */
  readonly leftMs: number;
};

type Deps = {
  readonly store: Pick<SessionStore, "sessionsOf" | "find" | "end" | "shiftMs" | "note">;
  readonly audit: Audit;
};

/**
 * For how long the end of a provider's session is noted at most, in ms. Completing a login takes no longer, and after the next sign-in the
 * provider may have a session of the same name.
 */
const NOTED_MS = 15_000;

/** @returns how many sessions have ended @throws StoreUnavailable if some may still be live. The call can be repeated */
export async function endUpstream(deps: Deps, ended: EndedLogin, requester: Requester): Promise<number> {
  const { issuer, sessionId: endedSession, leftMs } = ended;
  // A session of this login may be created at the same time. The end of the login is noted before its sessions are looked for, so that
  // either this search finds such a session, or its creation finds the note.
  if (endedSession !== undefined && leftMs > 0) {
    await deps.store.note({ issuer, endedSession }, Math.min(leftMs, NOTED_MS));
  }
  const found = await Promise.all(loginsOf(ended).map((login) => deps.store.sessionsOf(login)));
  let count = 0;
  await forEachConcurrently([...new Set(found.flat())], async (sid) => {
    if (await endOne(deps, sid, ended, requester)) count++;
  });
  return count;
}

async function endOne({ store, audit }: Deps, sid: SessionId, ended: EndedLogin, requester: Requester) {
  const found = await store.find(sid);
  if (!found.ok) return false;
  const { upstream, createdAt } = found.session;
  if (upstream === undefined || !isOf(upstream, ended)) return false;
  if (toWallClock(createdAt, store.shiftMs({ sid })) > ended.createdUntil) return false;
  return endLogin({ store, audit }, sid, requester);
}

type EndDeps = Pick<Deps, "audit"> & { readonly store: Pick<SessionStore, "end"> };

async function endLogin({ store, audit }: EndDeps, sid: SessionId, requester: Requester): Promise<boolean> {
  const outcome = await store.end(sid, "upstream_logout", originOf(requester));
  // Another call may have ended the session since it was found.
  if (!outcome.ok || !outcome.wasLive) return false;
  const { subject, actor } = outcome;
  audit({ event: "session_ended", sid, subject, actor, reason: "upstream_logout" }, requester);
  return true;
}

type CreatedDeps = EndDeps & { readonly store: Pick<SessionStore, "isNoted"> };

/** Ends a session that was just created, if the provider has ended its login in the meantime. */
export async function endIfOver(deps: CreatedDeps, { sid, upstream }: Session, requester: Requester): Promise<void> {
  if (await isOver(deps, upstream)) await endLogin(deps, sid, requester);
}

/** Returns whether a provider has just ended a login. */
export async function isOver({ store }: Pick<CreatedDeps, "store">, login: Upstream | undefined): Promise<boolean> {
  if (login?.sessionId === undefined) return false;
  return store.isNoted({ issuer: login.issuer, endedSession: login.sessionId });
}

/** Returns whether a session's login is among those that have ended. A member that one of the two lacks makes no difference. */
function isOf(login: Upstream, ended: Upstream): boolean {
  const agree = (one: string | undefined, other: string | undefined) =>
    one === undefined || other === undefined || one === other;
  return (
    login.issuer === ended.issuer && agree(login.sessionId, ended.sessionId) && agree(login.subject, ended.subject)
  );
}
