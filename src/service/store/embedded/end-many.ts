/**
 * Ends many sessions: those of a subject, and those that have expired.
 *
 * No transaction here ends more than `FEW_TO_END` sessions, so that none blocks the event loop for long. In a bulk logout, of a subject
 * with many sessions, one transaction stores the time of creation up to which they end. From then on they count as ended (ENDED in the SQL
 * statements). The transactions that follow delete their rows and append their log entries. Other work runs in between.
 */
import { randomBytes } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { EndReason, SessionId } from "../../session/model.ts";
import {
  type EndAllOptions,
  type EndAllOutcome,
  type EndedSession,
  type ExpiredSession,
  type ExpireOutcome,
  type SessionStore,
  StoreUnavailable,
} from "../../session/ports.ts";
import { type StoreMs, storeMs } from "../../session/time.ts";
import { EXPIRED_NOTE, noteOf, RECORDED_WITHIN_MS } from "../event-text.ts";
import type { FoundRow, SessionRows } from "./rows.ts";
import type { SignalSteps } from "./signal-steps.ts";
import type { Statements } from "./statements.ts";
import type { Transactions } from "./transactions.ts";

/** How many sessions one transaction ends, in about 2 ms. */
export const AT_ONCE = 50;
/** A subject with more sessions than this counts as one with many. The additional one is the session that a logout of all others spares. */
const FEW_TO_END = AT_ONCE + 1;
/** How many sessions one transaction examines for their expiry, in about 2 ms. */
const EXAMINED_AT_ONCE = 200;
/** How long the result of a finished bulk logout is kept, in ms. */
const KEPT_MS = 60_000;

/**
 * Ends a session, within a transaction. A `note` that is not empty is the text of its due record: an event to be recorded
 * (session/events/events.ts).
 */
export type EndStep = (sid: SessionId, reason: EndReason, now: StoreMs, note: string, subject: string) => EndedSession;

export type EndingDeps = {
  readonly sql: Statements;
  readonly sessions: SessionRows;
  readonly end: EndStep;
  readonly signals: SignalSteps;
};

type Deps = EndingDeps & Transactions;

/** A bulk logout. When it is finished, `created_until` is 0. */
type EndRow = {
  readonly id: string;
  readonly subject: string;
  readonly created_after: StoreMs;
  readonly created_until: StoreMs;
  readonly spared: SessionId;
  readonly reason: EndReason;
  readonly note: string;
  readonly count: number;
};

type ExpiringRow = Pick<FoundRow, "sid" | "idle_expires_at">;

export function createEndMany(deps: Deps): Pick<SessionStore, "endAll" | "expire"> {
  const { sql, read, write } = deps;
  return {
    async endAll(subject, reason, options = {}) {
      const id = randomBytes(8).toString("base64url");
      for (;;) {
        const begun = write("FULL", (now) => endAllStep(deps, subject, reason, options, id, now));
        if (typeof begun !== "string") return begun;
        const outcome = await finishEnd(deps, begun);
        if (begun === id) return outcome;
      }
    },

    /** Ends expired sessions. The change need not be on disk at once: if a power cut undoes it, a later call ends the sessions again. */
    async expire() {
      if (read((now) => sql.toExamine.get(now, 1)) === undefined) return { ended: [], isDone: true };
      return write("NORMAL", (now) => expireStep(deps, now));
    },
  };
}

/**
 * Ends the sessions of a subject if they are few. Otherwise begins a bulk logout, unless an earlier one is under way. Returns
 * the id of the logout that must be finished. @param id the id for a new one
 */
function endAllStep(
  { sql, sessions, end }: EndingDeps,
  subject: string,
  reason: EndReason,
  { except = "" as SessionId, caller, origin }: EndAllOptions,
  id: string,
  now: StoreMs,
): EndAllOutcome | string {
  const note = noteOf(origin);
  if (caller !== undefined && sessions.live(caller, now)?.subject !== subject)
    return { ok: false, reason: "caller_ended" };
  const other = sql.endOf.get(subject) as EndRow | undefined;
  if (other !== undefined) return other.id;
  const rows = sql.ofSubject.all(subject, FEW_TO_END + 1) as ExpiringRow[];
  if (rows.length <= FEW_TO_END) {
    const live = rows.filter((row) => now < row.idle_expires_at && row.sid !== except);
    const ended = live.map(({ sid }) => end(sid, reason, now, note, subject));
    return { ok: true, ended, count: ended.length };
  }
  sql.forgetEnds.run(now - KEPT_MS);
  const newest = Number(sql.newestOf.get(subject)?.time);
  sql.beginEnd.run(id, subject, Math.max(now, newest), except, reason, note, now);
  return id;
}

export type Logout = {
  /** The time of creation up to which sessions have ended. */
  readonly endedUntil: StoreMs;
  /** How many live sessions were created before, 0 or 1: a logout that is under way may spare one. */
  readonly spared: number;
};

/** Returns what the last logout of a subject, or of everyone, means for the subject's sessions. */
export function lastLogout({ sql, sessions }: EndingDeps, subject: string, now: StoreMs): Logout {
  const under = sql.endOf.get(subject) as EndRow | undefined;
  const endedUntil = storeMs(Math.max(Number(sql.endedUntil.get()?.time), under?.created_until ?? 0));
  return { endedUntil, spared: under !== undefined && sessions.live(under.spared, now) !== undefined ? 1 : 0 };
}

/** Finishes the bulk logout in which this session has ended. Verifiers learn of its end only from its log entry. */
export async function finishEndOf(deps: Deps, sid: SessionId): Promise<void> {
  const row = deps.sessions.get(sid);
  const id = row && deps.sql.endOf.get(row.subject)?.id;
  if (id !== undefined) await finishEnd(deps, String(id));
}

/**
 * Finishes a bulk logout: deletes their rows and appends their log entries. The sessions count as ended already, and that is on
 * disk, so only the last transaction here waits for the disk.
 */
export async function finishEnd(deps: Deps, id: string): Promise<EndAllOutcome> {
  const { sql, write } = deps;
  const ended: EndedSession[] = [];
  const startedAt = performance.now();
  for (;;) {
    await nextTurn();
    const part = write("NORMAL", (now) => endSomeStep(deps, id, now));
    if (part === undefined) throw new StoreUnavailable("the end of a subject's sessions is not known any more");
    ended.push(...part.ended);
    if (!part.isDone) continue;
    write("FULL", () => sql.touch.run());
    const isLate = performance.now() - startedAt > RECORDED_WITHIN_MS;
    return { ok: true, ended: isLate ? [] : ended, count: part.count };
  }
}

/** Some of the sessions of a bulk logout, and how many it has ended in all so far. */
type Part = { readonly isDone: boolean; readonly count: number; readonly ended: readonly EndedSession[] };

/** Deletes and logs some of the sessions of a bulk logout. Returns undefined if there is no such logout. */
function endSomeStep({ sql, end }: EndingDeps, id: string, now: StoreMs): Part | undefined {
  const row = sql.endById.get(id) as EndRow | undefined;
  if (row === undefined) return undefined;
  if (row.created_until === 0) return { isDone: true, count: row.count, ended: [] };
  const { subject, created_after, created_until, spared, reason, note } = row;
  const oldest = sql.ending.all(subject, created_after, created_until, spared, AT_ONCE) as ExpiringRow[];
  const ended: EndedSession[] = [];
  for (const { sid, idle_expires_at } of oldest) {
    if (now < idle_expires_at) ended.push(end(sid, reason, now, note, subject));
    else end(sid, "expired", now, EXPIRED_NOTE, subject);
  }
  const count = row.count + ended.length;
  const isDone = oldest.length < AT_ONCE;
  if (isDone) sql.finishEnd.run(count, now, id);
  else sql.countEnded.run(count, id);
  return { isDone, count, ended };
}

/** Ends some of the sessions that are past their lifetimes. Sessions that were refreshed in the meantime are examined later. */
export function expireStep({ sql, end, signals }: EndingDeps, now: StoreMs): ExpireOutcome {
  const rows = sql.toExamine.all(now, EXAMINED_AT_ONCE) as (ExpiringRow & Pick<FoundRow, "subject" | "ended">)[];
  const ended: ExpiredSession[] = [];
  let removed = 0;
  for (const { sid, subject, idle_expires_at, ended: withAll } of rows) {
    if (now < idle_expires_at) {
      sql.examineAtIdleExpiry.run(sid);
      continue;
    }
    if (++removed > AT_ONCE) return { ended, isDone: false };
    if (withAll) {
      signals.appendEndOfAll(sid);
      sql.endCreation.run({ sid, now });
      sql.remove.run(sid);
    } else {
      ended.push({ ...end(sid, "expired", now, EXPIRED_NOTE, subject), subject: subject || undefined });
    }
  }
  return { ended, isDone: rows.length < EXAMINED_AT_ONCE };
}
