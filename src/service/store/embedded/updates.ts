/** The operations that change what a session says. Each runs in one transaction. */
import type { Session } from "../../session/model.ts";
import type { SessionStore } from "../../session/ports.ts";
import type { StoreMs } from "../../session/time.ts";
import { countVersion } from "../../session/version.ts";
import { fixedOf, sessionOf } from "./rows.ts";
import { gone, type SessionDeps } from "./session-steps.ts";
import type { SignalSteps } from "./signal-steps.ts";
import type { Writes } from "./writes.ts";

type Deps = Pick<SessionDeps, "sql" | "sessions" | "log"> &
  Pick<Writes, "write" | "publish"> & {
    readonly signals: Pick<SignalSteps, "appendUpdated">;
  };

export function createUpdates(deps: Deps): Pick<SessionStore, "elevate" | "update"> {
  const { sql, sessions, log, write, publish } = deps;
  const counted = (changed: Session, isChanged: boolean, refresh: boolean, now: StoreMs): Session => {
    const { session, isMarked } = countVersion(changed, isChanged, refresh);
    if (isMarked) publish(log.appendMark(session.sid, session.version ?? 0, now));
    return session;
  };
  return {
    async elevate(sid, authentication, refresh = false) {
      return write("FULL", (now) => {
        const row = sessions.live(sid, now);
        if (row === undefined) return gone(deps, sid, now);
        const before = sessionOf(row);
        if (before.actor !== undefined) return { ok: false, reason: "has_actor" };
        if (authentication.time < (before.authentication?.time ?? 0)) return { ok: false, reason: "outdated" };
        const elevated = { ...before, authentication };
        const session = refresh ? counted(elevated, true, true, now) : elevated;
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
        const session = counted(changed, fixedOf(changed) !== text, refresh, now);
        const isChanged = fixedOf(session) !== text;
        if (isChanged) sql.fix.run(fixedOf(session), sid);
        if (session.version !== before.version) deps.signals.appendUpdated(session, now);
        return { ok: true, session, isChanged };
      });
    },
  };
}
