/** What the outcomes of both stores say of sessions that have ended. */
import type { SessionId } from "../session/model.ts";

/** A session that has ended, and the subject of its actor, if it had one. */
export type EndedSession = { readonly sid: SessionId; readonly actor: string | undefined };

/** Returns the actors of those sessions that had one, as the outcomes have them. */
function actorsOf(sessions: readonly EndedSession[]) {
  const entries = sessions.flatMap(({ sid, actor }) => (actor === undefined ? [] : [[sid, actor] as const]));
  return entries.length > 0 && { actors: new Map(entries) };
}

/** Returns the outcome of a logout that has ended these sessions. @param count how many have ended, if these are not all */
export function endAllOutcome(sessions: readonly EndedSession[], count = sessions.length) {
  return { ok: true, ended: sessions.map(({ sid }) => sid), count, ...actorsOf(sessions) } as const;
}

/** Returns the part of the outcome of a creation that says which sessions have ended for the new one. */
export function endedForNew(evicted: readonly EndedSession[], replaced: EndedSession | undefined) {
  return {
    evicted: evicted.map(({ sid }) => sid),
    replaced: replaced !== undefined,
    ...actorsOf(replaced === undefined ? evicted : [...evicted, replaced]),
  };
}
