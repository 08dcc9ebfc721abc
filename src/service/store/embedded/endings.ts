import { judgeEnd } from "../../session/devices/binding.ts";
import type { EndingHolder, EndOutcome, SessionStore } from "../../session/ports.ts";
import { storeMs } from "../../session/time.ts";
import { noteOf } from "../event-text.ts";
import type { Wakers } from "../wakers.ts";
import { type EndingDeps, finishEndOf } from "./end-many.ts";
import type { DueSteps } from "./events.ts";
import type { RevocationLog } from "./log.ts";
import { type SessionRow, sessionOf } from "./rows.ts";
import { isRevoked } from "./session-steps.ts";
import type { Transactions } from "./transactions.ts";
import type { Writes } from "./writes.ts";

type Deps = EndingDeps &
  Transactions &
  Pick<Writes, "handOver"> & {
    readonly log: RevocationLog;
    readonly due: DueSteps;
    readonly wakers: Pick<Wakers, "wake">;
  };

export function createEndings(deps: Deps): Pick<SessionStore, "end" | "endOwned" | "revokeAll"> {
  const { sql, sessions, log, due, signals, write, end, handOver, wakers } = deps;
  return {
    async end(sid, reason, origin, holder) {
      for (;;) {
        const outcome = write("FULL", (now): EndOutcome | undefined => {
          const live = sessions.live(sid, now);
          if (live === undefined && sessions.get(sid)?.ended === ENDED_WITH_SUBJECT) return undefined;
          if (live === undefined && isRevoked(deps, sid, now)) return { ok: false, reason: "already_ended" };
          const refusal = refusalOfEnd(live, holder);
          if (refusal !== undefined) return refusal;
          const subject = live?.subject ?? origin?.subject;
          const { actor } = end(sid, reason, now, subject === undefined ? "" : noteOf(origin), subject ?? "");
          if (live === undefined) return { ok: true, wasLive: false };
          return { ok: true, wasLive: true, subject: live.subject, actor };
        });
        if (outcome !== undefined) return outcome;
        await finishEndOf(deps, sid); // Verifiers must learn that the session has ended before the caller gets the response.
      }
    },

    async endOwned(caller, target, reason, origin) {
      return write("FULL", (now) => {
        const subject = sessions.live(caller, now)?.subject;
        if (subject === undefined) return { ok: false, reason: "caller_ended" };
        if (sessions.live(target, now)?.subject !== subject) return { ok: false, reason: "not_found" };
        return { ok: true, actor: end(target, reason, now, noteOf(origin), subject).actor };
      });
    },

    async revokeAll(createdBefore, origin) {
      const revokedUntil = write("FULL", (now) => {
        const before = Number(sql.endedUntil.get()?.time);
        const newest = Math.max(now, Number(sql.newest.get()?.time));
        const until = storeMs(Math.max(0, Math.min(newest, (createdBefore ?? Number.POSITIVE_INFINITY) - 1)));
        sql.endEveryone.run(until);
        handOver(sql.handOverAll.run(until));
        signals.beginEndOfAll(before, until, now);
        log.appendAll(until, now);
        due.leaveEndOfAll(until, origin, now);
        return until;
      });
      wakers.wake([]);
      return revokedUntil;
    },
  };
}

/** The value of `ended` for a session that ended in a logout of its subject, and that may not be in the revocation log yet. */
const ENDED_WITH_SUBJECT = 2;

/** Returns why a client may not end its session with the token it presented; undefined if it may, or if it presented no token. */
function refusalOfEnd(row: SessionRow | undefined, holder: EndingHolder | undefined) {
  if (row === undefined || holder === undefined) return undefined;
  const session = sessionOf(row);
  const reason = judgeEnd(session, holder, holder.proof);
  if (reason === "allowed") return undefined;
  return { ok: false, reason, subject: session.subject, actor: session.actor?.subject } as const;
}
