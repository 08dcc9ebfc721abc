/**
 * Operations that take several transactions if a subject has many sessions (subject-steps.ts). Other work runs between the transactions.
 */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Origin } from "../../session/events.ts";
import type { EndReason, NewSession, Session, SessionId } from "../../session/model.ts";
import { type EndAllOptions, type EndAllOutcome, type ExpireOutcome, StoreUnavailable } from "../../session/ports.ts";
import type { StoreMs } from "../../session/time.ts";
import { noteOf, RECORDED_WITHIN_MS } from "../due-text.ts";
import { sessionOf } from "./rows.ts";
import type { SessionTable } from "./session-table.ts";
import type { Statements } from "./statements.ts";
import { type CreateStep, type EndStep, newEndId, type SubjectSteps } from "./subject-steps.ts";
import type { Durability } from "./transactions.ts";

type Deps = {
  readonly sql: Statements;
  readonly sessions: SessionTable;
  readonly steps: SubjectSteps;
  readonly end: EndStep;
  readonly leaveCreated: (session: NewSession, origin: Origin | undefined, now: StoreMs) => void;
  readonly read: <T>(step: (now: StoreMs) => T) => T;
  readonly write: <T>(durability: Durability, step: (now: StoreMs) => T) => T;
};

type Created = { readonly session: Session; readonly evicted: readonly SessionId[]; readonly replaced: boolean };

export class Subjects {
  readonly #deps: Deps;
  /** The ends of many sessions that were under way at the last call, with their progress. */
  #underWay: ReadonlySet<string> = new Set();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  async create(
    session: NewSession,
    childNonce: string,
    cap: number,
    replaces: SessionId | undefined,
    origin: Origin | undefined,
  ): Promise<Created> {
    const { sessions, steps, end, leaveCreated, write } = this.#deps;
    const note = noteOf(origin);
    const evicted: SessionId[] = [];
    let replaced = false;
    for (;;) {
      const step = write("FULL", (now): CreateStep => {
        const existing = sessions.get(session.sid);
        // If the session exists, an earlier attempt of the same call has created it.
        if (existing !== undefined) return { state: "created", session: sessionOf(existing), evicted: [] };
        const old = replaces && sessions.live(replaces, now);
        if (old) {
          end(old.sid, "replaced", now, note, old.subject);
          replaced = true;
        }
        const step = steps.create(session, childNonce, cap, now, note);
        if (step.state === "created") leaveCreated(session, origin, now);
        return step;
      });
      if (step.state !== "swept") evicted.push(...step.evicted);
      if (step.state === "created") return { session: step.session, evicted, replaced };
      await nextTurn();
    }
  }

  async endAll(subject: string, reason: EndReason, options: EndAllOptions): Promise<EndAllOutcome> {
    const { steps, write } = this.#deps;
    const id = newEndId();
    for (;;) {
      const begun = write("FULL", (now) => steps.endAll(subject, reason, options, id, now));
      if ("ok" in begun) return begun;
      const finished = await this.#finish(begun.id);
      if (begun.state === "begun") return { ok: true, ...finished };
    }
  }

  /** Ends expired sessions. The step need not be on disk at once: if a power cut undoes it, a later call does it again. */
  expire(): ExpireOutcome {
    const { sql, steps, read, write } = this.#deps;
    if (read((now) => sql.toExamine.get(now, 1)) === undefined) return { ended: [], isDone: true };
    return write("NORMAL", (now) => steps.expire(now));
  }

  /** Finishes the end of many sessions that a session is part of, so that verifiers learn of its ending. */
  async finishFor(sid: SessionId): Promise<void> {
    const { sql, sessions } = this.#deps;
    const row = sessions.get(sid);
    const id = row && sql.endOf.get(row.subject)?.id;
    if (id !== undefined) await this.#finish(String(id));
  }

  /** Continues ends that made no progress since the last call: the process that began them may have died. */
  resume(): void {
    const rows = this.#deps.sql.endsUnderWay.all() as { readonly id: string; readonly count: number }[];
    const before = this.#underWay;
    this.#underWay = new Set(rows.map(({ id, count }) => `${id} ${count}`));
    for (const { id, count } of rows) {
      // If finishing the end fails, the next reading finds the end again.
      if (before.has(`${id} ${count}`)) this.#finish(id).catch(() => {});
    }
  }

  /**
   * Finishes an end of many sessions. The fact that all have ended is on disk before this begins, so the rows that it writes need not be
   * on disk before it is done.
   */
  async #finish(id: string): Promise<{ readonly count: number; readonly ended: readonly SessionId[] }> {
    const { sql, steps, write } = this.#deps;
    const ended: SessionId[] = [];
    const startedAt = performance.now();
    for (;;) {
      await nextTurn();
      const part = write("NORMAL", (now) => steps.endSome(id, now));
      if (part === undefined) throw new StoreUnavailable("the end of a subject's sessions is not known any more");
      ended.push(...part.ended);
      if (!part.done) continue;
      write("FULL", () => sql.touch.run());
      const isLate = performance.now() - startedAt > RECORDED_WITHIN_MS;
      return { count: part.count, ended: isLate ? [] : ended };
    }
  }
}
