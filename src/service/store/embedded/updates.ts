/** The operations that change what a session says. Each runs in one transaction. */
import type { Session, SessionId } from "../../session/model.ts";
import type { SessionStore } from "../../session/ports.ts";
import type { StoreMs } from "../../session/time.ts";
import { fixedOf, sessionOf } from "./rows.ts";
import { gone, type SessionDeps } from "./session-steps.ts";

type Deps = Pick<SessionDeps, "sql" | "sessions" | "log" | "write"> & {
  readonly markStale: (sid: SessionId, version: number, now: StoreMs) => void;
};

export function createUpdates(deps: Deps): Pick<SessionStore, "elevate" | "update"> {
  const { sql, sessions, write } = deps;
  return {
    async elevate(sid, authentication, refresh = false) {
      return write("FULL", (now) => {
        const row = sessions.live(sid, now);
        if (row === undefined) return gone(deps, sid, now);
        const before = sessionOf(row);
        if (authentication.time < (before.authentication?.time ?? 0)) return { ok: false, reason: "outdated" };
        const elevated = { ...before, authentication };
        const session = refresh ? countVersion(deps, elevated, true, true, now) : elevated;
        sql.fix.run(fixedOf(session), sid);
        return { ok: true, session };
      });
    },

    async update(sid, { claims, audience, ifVersion, refresh }) {
      return write("FULL", (now) => {
        const row = sessions.live(sid, now);
        if (row === undefined) return gone(deps, sid, now);
        const before = sessionOf(row);
        if (ifVersion !== undefined && ifVersion !== (before.version ?? 0)) return { ok: false, reason: "conflict" };
        const changed = { ...before, ...(claims !== undefined && { claims }), ...(audience && { audience }) };
        const text = fixedOf(before);
        const session = countVersion(deps, changed, fixedOf(changed) !== text, refresh, now);
        const isChanged = fixedOf(session) !== text;
        if (isChanged) sql.fix.run(fixedOf(session), sid);
        return { ok: true, session, isChanged };
      });
    },
  };
}

/**
 * Counts a change of a session in its version. With `refresh`, marks access tokens of earlier versions as stale, in the session and in the
 * log; if all of them are stale already, appends nothing. Returns the session, which the caller writes.
 */
function countVersion(
  { markStale }: Pick<Deps, "markStale">,
  session: Session,
  isChanged: boolean,
  refresh: boolean,
  now: StoreMs,
): Session {
  const version = (session.version ?? 0) + (isChanged ? 1 : 0);
  if (version === 0) return session;
  if (!refresh || version <= (session.staleBelow ?? 0)) return { ...session, version };
  markStale(session.sid, version, now);
  return { ...session, version, staleBelow: version };
}
