/**
 * Steps on the sessions of one subject. Each runs within a transaction that the store (store.ts) has opened.
 *
 * A subject may have many sessions. No step ends or deletes more than `AT_ONCE` of them, so that no step blocks the event loop for long. To
 * end many sessions, one transaction stores the time of creation up to which they end. From then on they count as ended (ENDED in the SQL
 * statements). The steps that follow delete their rows and append their log entries.
 */
import { LIMIT_WINDOW, takeExcess } from "../../session/admin/limit.ts";
import type { EndReason, NewSession, Session, SessionId } from "../../session/model.ts";
import type { EndAllOptions, EndAllOutcome, ExpiredSession, ExpireOutcome } from "../../session/ports.ts";
import { later, latest, type StoreMs, storeMs } from "../../session/time.ts";
import { EXPIRED_NOTE, noteOf } from "../event-text.ts";
import type { SessionTable } from "./rows.ts";
import type { SignalSteps } from "./signal-steps.ts";
import type { Statements } from "./statements.ts";

/** How many sessions one transaction ends, in about 2 ms. */
export const AT_ONCE = 50;
/** If a subject has more sessions than this, the order in which sessions of the same millisecond are evicted is undefined. */
export const FEW = 128;
/**
 * How many sessions are checked for expiry, at most, before a session is created. If the subject has no more sessions than this, all of
 * them are checked; otherwise the sessions of any subject that may have expired.
 */
const MAX_EXPIRED = 1_000;
/** How many sessions one transaction examines for their expiry, in about 2 ms. */
const EXAMINED_AT_ONCE = 200;
/** How long the result of a finished logout of many sessions is kept, in ms. */
const KEPT_MS = 60_000;

/**
 * Ends a session. A `note` that is not empty is the text of its due record: an event to be recorded (session/events/events.ts). Returns the subject
 * of the session's actor, if it had one.
 */
export type EndStep = (
  sid: SessionId,
  reason: EndReason,
  now: StoreMs,
  note: string,
  subject: string,
) => string | undefined;

export type SubjectDeps = {
  readonly sql: Statements;
  readonly sessions: SessionTable;
  readonly end: EndStep;
  readonly signals: SignalSteps;
};

/** The logout of a subject with many sessions. When it is finished, `created_until` is 0. */
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

/** The result of one step of a logout of many sessions; `count` is the total so far. Undefined means that there is no such logout. */
type Part =
  | { readonly done: boolean; readonly count: number; readonly ended: readonly SessionId[]; readonly actors: Actors }
  | undefined;

/** The actors of sessions that have ended, of those that had one. */
export type Actors = Map<SessionId, string>;

/** Returns a step that ends sessions, and the actors of those that it ends and that have one. */
export function notingActors(end: EndStep): { readonly end: EndStep; readonly actors: Actors } {
  const actors: Actors = new Map();
  return {
    actors,
    end(sid, ...how) {
      const actor = end(sid, ...how);
      if (actor !== undefined) actors.set(sid, actor);
      return actor;
    },
  };
}

export function withActors(actors: Actors): { readonly actors?: Actors } {
  return actors.size === 0 ? {} : { actors };
}

/** `begun`: the logout of many sessions has begun. `busy`: an earlier one of the same subject, with this id, must be finished first. */
type Begun = { readonly state: "begun" | "busy"; readonly id: string };

/** The result of one step of a creation. Unless the session was created, the caller must run another step. */
export type CreateStep =
  | { readonly state: "created"; readonly session: Session; readonly evicted: readonly SessionId[] }
  | { readonly state: "evicted"; readonly evicted: readonly SessionId[] }
  | { readonly state: "swept" };

/** Returns whether none of the subject's live sessions, of the newest `FEW`, has this user agent. */
export function isNewDevice({ sql }: Pick<SubjectDeps, "sql">, { subject, client }: NewSession, now: StoreMs): boolean {
  return client.userAgent !== "" && sql.hasAgent.get(subject, now, FEW, client.userAgent) === undefined;
}

type Used = { readonly sid: SessionId; readonly lastRefreshedAt: number };

/** Ends the least recently used sessions beyond the cap, and creates one. @param session must not exist yet */
export function createStep(
  { sql, sessions, end, signals }: SubjectDeps,
  session: NewSession,
  childNonce: string,
  cap: number,
  now: StoreMs,
  note: string,
): CreateStep {
  const { subject } = session;
  const under = sql.endOf.get(subject) as EndRow | undefined;
  const endedUntil = storeMs(Math.max(Number(sql.endedUntil.get()?.time), under?.created_until ?? 0));
  const spared = under !== undefined && sessions.live(under.spared as SessionId, now) !== undefined ? 1 : 0;
  // The sessions are counted only up to this limit. With more of them, one step cannot end enough sessions to make room for the new one,
  // even if MAX_EXPIRED of them have expired, so that a higher count would change nothing.
  const counted = Number(sql.countOf.get(subject, endedUntil, cap + MAX_EXPIRED + FEW)?.count);
  const evict = (used: Used[], excess: number): readonly SessionId[] => {
    const sids = takeExcess(used, excess, LIMIT_WINDOW).map(({ sid }) => sid);
    for (const sid of sids) end(sid, "session_limit", now, note, subject);
    return sids;
  };
  let evicted: readonly SessionId[] = [];
  // Sessions with an actor, which are few, count apart from the others.
  const acting = () => sql.actingOf.all(subject, now) as Used[];
  if (session.actor !== undefined) {
    const own = acting();
    evicted = evict(own, own.length - cap + 1);
  } else if (counted + spared >= cap) {
    const many = counted > MAX_EXPIRED;
    const crowded = many && Number(sql.countToExamine.get(now, MAX_EXPIRED + 1)?.count) > MAX_EXPIRED;
    if (crowded && expireStep({ sql, sessions, end, signals }, now).ended.length > 0) return { state: "swept" };
    const live =
      many && !crowded
        ? counted - Number(sql.countExpiredOfMany.get(now, now, subject, endedUntil)?.count)
        : Number(sql.countLiveOf.get(subject, endedUntil, now, cap + FEW)?.count);
    const count = live + spared - acting().length;
    const excess = Math.max(0, count - cap + 1);
    const oldest = count <= FEW ? sql.oldestOfFew : sql.oldest;
    const ending = Math.min(excess, AT_ONCE);
    evicted = evict(oldest.all(subject, now, ending + LIMIT_WINDOW - 1) as Used[], ending);
    if (excess > AT_ONCE) return { state: "evicted", evicted };
  }
  return {
    state: "created",
    session: sessions.insert(session, childNonce, latest(now, later(endedUntil, 1))),
    evicted,
  };
}

/** @param id the id for the logout, if the subject turns out to have many sessions */
export function endAllStep(
  { sql, sessions, end }: SubjectDeps,
  subject: string,
  reason: EndReason,
  { except = "" as SessionId, actor, origin }: EndAllOptions,
  id: string,
  now: StoreMs,
): EndAllOutcome | Begun {
  const note = noteOf(origin);
  if (actor !== undefined && sessions.live(actor, now)?.subject !== subject)
    return { ok: false, reason: "actor_ended" };
  const other = sql.endOf.get(subject) as EndRow | undefined;
  if (other !== undefined) return { state: "busy", id: other.id };
  const few = sessions.few(subject, now, AT_ONCE + 1);
  if (few !== undefined) {
    const ended = few.filter((sid) => sid !== except);
    const { end: endOne, actors } = notingActors(end);
    for (const sid of ended) endOne(sid, reason, now, note, subject);
    return { ok: true, ended, count: ended.length, ...withActors(actors) };
  }
  sql.forgetEnds.run(now - KEPT_MS);
  const newest = Number(sql.newestOf.get(subject)?.time);
  sql.beginEnd.run(id, subject, Math.max(now, newest), except, reason, note, now);
  return { state: "begun", id };
}

/** Ends some of the sessions that are past their lifetimes. Sessions that were refreshed in the meantime are examined later. */
export function expireStep({ sql, end, signals }: SubjectDeps, now: StoreMs): ExpireOutcome {
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
      signals.appendEndOfAll(sid);
      sql.endCreation.run({ sid, now });
      sql.remove.run(sid);
    } else {
      const actor = end(sid, "expired", now, EXPIRED_NOTE, subject);
      ended.push({ sid, ...(subject !== "" && { subject }), ...(actor !== undefined && { actor }) });
    }
  }
  return { ended, isDone: rows.length < EXAMINED_AT_ONCE };
}

/** Deletes and logs some of the sessions of a logout of many sessions. */
export function endSomeStep({ sql, end }: SubjectDeps, id: string, now: StoreMs): Part {
  const row = sql.endById.get(id) as EndRow | undefined;
  if (row === undefined) return undefined;
  if (row.created_until === 0) return { done: true, count: row.count, ended: [], actors: new Map() };
  const { subject, created_after, created_until, spared, reason, note } = row;
  const oldest = sql.ending.all(subject, created_after, created_until, spared, AT_ONCE) as {
    readonly sid: SessionId;
    readonly idle_expires_at: StoreMs;
  }[];
  const ended: SessionId[] = [];
  const { end: endOne, actors } = notingActors(end);
  for (const { sid, idle_expires_at } of oldest) {
    if (now < idle_expires_at) {
      endOne(sid, reason, now, note, subject);
      ended.push(sid);
    } else {
      end(sid, "expired", now, EXPIRED_NOTE, subject);
    }
  }
  const count = row.count + ended.length;
  const done = oldest.length < AT_ONCE;
  if (done) sql.finishEnd.run(count, now, id);
  else sql.countEnded.run(count, id);
  return { done, count, ended, actors };
}
