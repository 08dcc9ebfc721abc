/** Operations that take several transactions if a subject has many sessions (subject-steps.ts). Other work runs in between. */
import { randomBytes } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { SessionId } from "../../session/model.ts";
import { type SessionStore, StoreUnavailable } from "../../session/ports.ts";
import { RECORDED_WITHIN_MS } from "../event-text.ts";
import { type Actors, endAllStep, endSomeStep, expireStep, type SubjectDeps, withActors } from "./subject-steps.ts";
import type { Transactions } from "./transactions.ts";

type Deps = SubjectDeps & Transactions;

export function createSubjects(deps: Deps): Pick<SessionStore, "endAll" | "expire"> {
  const { sql, read, write } = deps;
  return {
    async endAll(subject, reason, options = {}) {
      const id = randomBytes(8).toString("base64url");
      for (;;) {
        const begun = write("FULL", (now) => endAllStep(deps, subject, reason, options, id, now));
        if ("ok" in begun) return begun;
        const finished = await finishEnd(deps, begun.id);
        if (begun.state === "begun") return { ok: true, ...finished };
      }
    },

    /** Ends expired sessions. The change need not be on disk at once: if a power cut undoes it, a later call ends the sessions again. */
    async expire() {
      if (read((now) => sql.toExamine.get(now, 1)) === undefined) return { ended: [], isDone: true };
      return write("NORMAL", (now) => expireStep(deps, now));
    },
  };
}

/** Finishes the logout of many sessions in which this session has ended. Verifiers learn of its end only from its log entry. */
export async function finishEndOf(deps: Deps, sid: SessionId): Promise<void> {
  const row = deps.sessions.get(sid);
  const id = row && deps.sql.endOf.get(row.subject)?.id;
  if (id !== undefined) await finishEnd(deps, String(id));
}

/**
 * Finishes a logout of many sessions: deletes their rows and appends their log entries. The sessions count as ended already, and that is on
 * disk, so only the last transaction here waits for the disk.
 */
export async function finishEnd(deps: Deps, id: string) {
  const { sql, write } = deps;
  const ended: SessionId[] = [];
  const actors: Actors = new Map();
  const startedAt = performance.now();
  for (;;) {
    await nextTurn();
    const part = write("NORMAL", (now) => endSomeStep(deps, id, now));
    if (part === undefined) throw new StoreUnavailable("the end of a subject's sessions is not known any more");
    ended.push(...part.ended);
    for (const [sid, actor] of part.actors) actors.set(sid, actor);
    if (!part.done) continue;
    write("FULL", () => sql.touch.run());
    const isLate = performance.now() - startedAt > RECORDED_WITHIN_MS;
    return { count: part.count, ended: isLate ? [] : ended, ...withActors(actors) };
  }
}
