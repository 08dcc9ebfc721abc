/** Creates sessions that somebody uses in place of their subject (impersonation). */
import type { Requester } from "../audit.ts";
import type { Limited } from "../errors.ts";
import { originOf } from "../events/due-lines.ts";
import type { NewSession } from "../model.ts";
import type { CreateOptions, SessionStore } from "../ports.ts";
import { type Created, create, type SessionRefused } from "./create.ts";

type Deps = Parameters<typeof create>[0] & {
  readonly store: Pick<SessionStore, "find" | "attach" | "end">;
};

/**
 * `ended`: the actor's session is not a live session of the actor. `has_actor`: somebody acts in that session, and nobody acts through two.
 * `full`: too many sessions end with it.
 */
type ActorRefused = { readonly ok: false; readonly reason: "ended" | "has_actor" | "full" };

/**
 * Creates a session like `create`. A session that is to end with the actor's own session is attached to that session before its tokens are
 * returned. If the actor's session has ended by then, the new session ends at once. If this instance dies before it has attached the new
 * session, nobody has received its tokens. So nobody can use the new session after the actor's session has ended.
 */
export async function createForActor(
  deps: Deps,
  wanted: Omit<NewSession, "sid">,
  requester: Requester,
  { replaces, limit }: Pick<CreateOptions, "replaces" | "limit"> = {},
): Promise<Created | Limited | SessionRefused | ActorRefused> {
  const { actor } = wanted;
  if (actor === undefined) return create(deps, wanted, requester, { replaces, limit });
  if (actor.sessionId === undefined) return create(deps, wanted, requester, { replaces });
  const found = await deps.store.find(actor.sessionId);
  if (!found.ok || found.session.subject !== actor.subject) return { ok: false, reason: "ended" };
  if (found.session.actor !== undefined) return { ok: false, reason: "has_actor" };
  const created = await create(deps, wanted, requester, { replaces });
  if (!created.ok || !actor.endsWithSession) return created;
  const { sid, subject, createdAt, absoluteExpiresAt } = created.session;
  const attached = await deps.store.attach(sid, actor.sessionId, absoluteExpiresAt - createdAt);
  if (attached.ok) return created;
  const ended = await deps.store.end(sid, "actor_ended", originOf(requester));
  if (ended.ok) {
    deps.audit({ event: "session_ended", sid, subject, actor: actor.subject, reason: "actor_ended" }, requester);
  }
  return attached;
}
