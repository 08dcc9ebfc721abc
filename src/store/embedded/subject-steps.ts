/**
 * Steps on the sessions of one subject, each within a transaction that the store (store.ts) has opened. A subject may have many: no
 * step ends, or deletes, more than `AT_ONCE` of them, so that none holds up the event loop for long.
 *
 * The end of many is noted in one transaction, with the time until when they were created: by that all have ended (the statements'
 * ENDED). Their rows go, and their entries in the log come, with the steps that follow.
 */
import { randomBytes } from "node:crypto";
import type { EndReason, NewSession, Session, SessionId } from "../../session/model.ts";
import type { EndAllOptions, EndAllOutcome, ExpiredSession, ExpireOutcome } from "../../session/ports.ts";
import { later, latest, type StoreMs, storeMs } from "../../session/time.ts";
import { EXPIRED_NOTE, noteOf } from "../due-text.ts";
import type { SessionTable } from "./session-table.ts";
import type { Statements } from "./statements.ts";

/** Sessions that one step ends: some 2 ms. */
const AT_ONCE = 50;
/** Sessions whose order within a millisecond is kept where the oldest must go. */
const FEW = 128;
/** Sessions that a creation looks through for those that have expired: of its subject or, if that has more, of all that may have. */
const MAX_EXPIRED = 1_000;
/** Sessions that a step examines for their expiry: some 2 ms. */
const EXAMINED_AT_ONCE = 200;
/** How long it is known how many sessions have ended with a subject's, ms. */
const KEPT_MS = 60_000;

/** Ends a session, and leaves a due record if there is a note of it. */
export type EndStep = (sid: SessionId, reason: EndReason, now: StoreMs, note: string, subject: string) => void;

type Deps = {
  readonly sql: Statements;
  readonly sessions: SessionTable;
  readonly end: EndStep;
  /** Appends the signal of a session that ended with all others, unless that was done. */
  readonly endedWithAll: (sid: SessionId) => void;
};

/** An end of many sessions of a subject. Once it is finished, `created_until` is 0. */
type EndRow = {
  readonly id: string;
  readonly subject: string;
  readonly created_after: StoreMs;
  readonly created_until: StoreMs;
  readonly spared: string;
  readonly reason: EndReason;
  readonly note: string;
  readonly count: number;
};

/** What one step has done of the end of many: `count` in all so far. Undefined: nothing is known of it. */
type Part = { readonly done: boolean; readonly count: number; readonly ended: readonly SessionId[] } | undefined;

/** Under way, by its id; or another one is to come to its end before. */
type Begun = { readonly state: "begun" | "busy"; readonly id: string };

/** Created; or a step before it, which is to be repeated. */
export type CreateStep =
  | { readonly state: "created"; readonly session: Session; readonly evicted: readonly SessionId[] }
  | { readonly state: "evicted"; readonly evicted: readonly SessionId[] }
  | { readonly state: "swept" };

export class SubjectSteps {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Ends the oldest sessions beyond the cap, and creates one. @param session not there yet */
  create(session: NewSession, childNonce: string, cap: number, now: StoreMs, note: string): CreateStep {
    const { sql, sessions, end } = this.#deps;
    const { subject } = session;
    const under = sql.endOf.get(subject) as EndRow | undefined;
    const endedUntil = storeMs(Math.max(Number(sql.endedUntil.get()?.time), under?.created_until ?? 0));
    const spared = under !== undefined && sessions.live(under.spared as SessionId, now) !== undefined ? 1 : 0;
    // No more are counted than make a difference: of so many, less the expired ones, more are above the cap than one step can end.
    const counted = Number(sql.countOf.get(subject, endedUntil, cap + MAX_EXPIRED + FEW)?.count);
    let evicted: SessionId[] = [];
    if (counted + spared >= cap) {
      const many = counted > MAX_EXPIRED;
      const crowded = many && Number(sql.countToExamine.get(now, MAX_EXPIRED + 1)?.count) > MAX_EXPIRED;
      if (crowded && this.expire(now).ended.length > 0) return { state: "swept" };
      const live =
        many && !crowded
          ? counted - Number(sql.countExpiredOfMany.get(now, subject, endedUntil)?.count)
          : Number(sql.countLiveOf.get(subject, endedUntil, now, cap + FEW)?.count);
      const count = live + spared;
      const excess = Math.max(0, count - cap + 1);
      const oldest = count <= FEW ? sql.oldestOfFew : sql.oldest;
      evicted = (oldest.all(subject, now, Math.min(excess, AT_ONCE)) as { sid: SessionId }[]).map(({ sid }) => sid);
      for (const sid of evicted) end(sid, "session_limit", now, note, subject);
      if (excess > AT_ONCE) return { state: "evicted", evicted };
    }
    return {
      state: "created",
      session: sessions.insert(session, childNonce, latest(now, later(endedUntil, 1))),
      evicted,
    };
  }

  /** @param id of an end of many, if it is one */
  endAll(
    subject: string,
    reason: EndReason,
    { except = "" as SessionId, actor, origin }: EndAllOptions,
    id: string,
    now: StoreMs,
  ): EndAllOutcome | Begun {
    const { sql, sessions, end } = this.#deps;
    const note = noteOf(origin);
    if (actor !== undefined && sessions.live(actor, now)?.subject !== subject)
      return { ok: false, reason: "actor_ended" };
    const other = sql.endOf.get(subject) as EndRow | undefined;
    if (other !== undefined) return { state: "busy", id: other.id };
    const few = sessions.few(subject, now, AT_ONCE + 1);
    if (few !== undefined) {
      const ended = few.filter((sid) => sid !== except);
      for (const sid of ended) end(sid, reason, now, note, subject);
      return { ok: true, ended, count: ended.length };
    }
    sql.forgetEnds.run(now - KEPT_MS);
    const newest = Number(sql.newestOf.get(subject)?.time);
    sql.beginEnd.run(id, subject, Math.max(now, newest), except, reason, note, now);
    return { state: "begun", id };
  }

  /** Ends some of the sessions that are past their lifetimes. Those that were refreshed meanwhile are examined later. */
  expire(now: StoreMs): ExpireOutcome {
    const { sql, end, endedWithAll } = this.#deps;
    const rows = sql.toExamine.all(now, EXAMINED_AT_ONCE) as {
      readonly sid: SessionId;
      readonly subject: string;
      readonly idle_expires_at: StoreMs;
      readonly ended: number;
    }[];
    const ended: ExpiredSession[] = [];
    let removed = 0;
    for (const { sid, subject, idle_expires_at, ended: withAll } of rows) {
      if (now < idle_expires_at) {
        sql.examineLater.run(sid);
        continue;
      }
      if (++removed > AT_ONCE) return { ended, isDone: false };
      if (withAll) {
        endedWithAll(sid);
        sql.remove.run(sid);
      } else {
        end(sid, "expired", now, EXPIRED_NOTE, subject);
        ended.push({ sid, subject });
      }
    }
    return { ended, isDone: rows.length < EXAMINED_AT_ONCE };
  }

  /** Does a part of what an end of many leaves to be done. */
  endSome(id: string, now: StoreMs): Part {
    const { sql, end } = this.#deps;
    const row = sql.endById.get(id) as EndRow | undefined;
    if (row === undefined) return undefined;
    if (row.created_until === 0) return { done: true, count: row.count, ended: [] };
    const { subject, created_after, created_until, spared, reason, note } = row;
    const oldest = sql.ending.all(subject, created_after, created_until, spared, AT_ONCE) as {
      readonly sid: SessionId;
      readonly idle_expires_at: StoreMs;
    }[];
    const ended: SessionId[] = [];
    for (const { sid, idle_expires_at } of oldest) {
      if (now < idle_expires_at) {
        end(sid, reason, now, note, subject);
        ended.push(sid);
      } else {
        end(sid, "expired", now, EXPIRED_NOTE, subject);
      }
    }
    const count = row.count + ended.length;
    const done = oldest.length < AT_ONCE;
    if (done) sql.finishEnd.run(count, now, id);
    else sql.countEnded.run(count, id);
    return { done, count, ended };
  }
}

export function newEndId(): string {
  return randomBytes(8).toString("base64url");
}
