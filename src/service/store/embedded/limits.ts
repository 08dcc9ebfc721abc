/**
 * Makes room for a new session of a subject: within its limit, if it has one, and within the cap that holds for every subject. Each
 * function runs within the transaction of a creation (create.ts).
 */
import {
  groupOf,
  LIMIT_WINDOW,
  MAX_LISTED,
  type SessionLimit,
  takeExcess,
  windowOf,
} from "../../session/admin/limit.ts";
import type { NewSession, Session, SessionId } from "../../session/model.ts";
import type { CreateOutcome, EndedSession } from "../../session/ports.ts";
import { type StoreMs, storeMs } from "../../session/time.ts";
import type { PagePosition } from "../search.ts";
import { AT_ONCE, type EndingDeps, expireStep, type Logout } from "./end-many.ts";
import { type FoundRow, sessionOf, usedAtOf } from "./rows.ts";

/** If a subject has more sessions than this, the order in which sessions of the same millisecond are evicted is undefined. */
export const FEW = 128;
/** How many sessions one step examines for the limit, in about a millisecond. */
const EXAMINED = 200;
/**
 * How many sessions are checked for expiry, at most, before a session is created. If the subject has no more sessions than this, all of
 * them are checked; otherwise the sessions of any subject that may have expired.
 */
const MAX_EXPIRED = 1_000;

/** What earlier steps have found, if a subject has more sessions than one step examines. */
export type LimitProgress = { readonly after: PagePosition; readonly known: readonly SessionId[] };

const START: LimitProgress = { after: { createdAt: storeMs(0), sid: "" as SessionId }, known: [] };

/** The sessions that a step has ended. Unless that is enough, another step must follow. */
type Room = {
  readonly evicted: readonly EndedSession[];
  readonly isEnough: boolean;
  /** The place at which that step continues, if this one has found no session to end. */
  readonly counted?: LimitProgress;
};

export const ENOUGH: Room = { evicted: [], isEnough: true };

type Refusal = Extract<CreateOutcome, { readonly reason: "refused" }>;

type Limited = {
  readonly session: NewSession;
  /** The live session that the new one replaces, if there is one. */
  readonly replaced: Session | undefined;
  readonly counted: LimitProgress | undefined;
  /** The text of the due records of sessions that end. */
  readonly note: string;
};

export function applyLimit(
  { sql, sessions, end }: EndingDeps,
  limit: SessionLimit,
  { session, replaced, counted: { after, known } = START, note }: Limited,
  now: StoreMs,
): Room | Refusal {
  const { subject } = session;
  const group = groupOf(session, limit.scope);
  const isCounted = (other: Session) =>
    other.subject === subject && other.actor === undefined && groupOf(other, limit.scope) === group;
  if (replaced !== undefined && isCounted(replaced)) return ENOUGH;
  const rows = sql.ofSubjectAfter.all(subject, after.createdAt, after.sid, EXAMINED) as (FoundRow & {
    rowid: number;
  })[];
  const isAll = rows.length < EXAMINED;
  const last = rows.at(-1);
  // Sessions of the same millisecond are in order of their creation while there are few.
  if (rows.length <= FEW) rows.sort((a, b) => a.rowid - b.rowid);
  const found = [
    ...known.flatMap((sid) => sessions.live(sid, now) ?? []),
    ...rows.filter((row) => now < row.idle_expires_at && !row.ended),
  ];
  const counted = found.flatMap((row) => {
    const other = sessionOf(row);
    return isCounted(other) ? [{ sid: other.sid, session: other, usedAt: usedAtOf(row) }] : [];
  });
  const window = windowOf(limit);
  if (!isAll && last !== undefined && counted.length < limit.maxSessions + window) {
    const progress = { after: { createdAt: last.created_at, sid: last.sid }, known: counted.map(({ sid }) => sid) };
    return { evicted: [], isEnough: false, counted: progress };
  }
  const excess = counted.length - limit.maxSessions + 1;
  if (excess <= 0) return ENOUGH;
  if (limit.whenExceeded === "refuse")
    return {
      ok: false,
      reason: "refused",
      limit,
      live: takeExcess(counted, MAX_LISTED, window).map(({ session: live }) => live),
    };
  // If further parts of the list follow, sessions of this part end only while a whole window of them is left: the next part may have a
  // session that was used less recently.
  const ending = Math.min(excess, AT_ONCE, isAll ? excess : counted.length - window + 1);
  const evicted = takeExcess(counted, ending, window).map(({ sid }) => end(sid, "session_limit", now, note, subject));
  return { evicted, isEnough: isAll && ending === excess };
}

type Used = { readonly sid: SessionId; readonly usedAt: number };

/** Ends the least recently used sessions beyond the cap. Sessions with an actor, which are few, count apart from the others. */
export function applyCap(
  deps: EndingDeps,
  { subject, actor }: NewSession,
  cap: number,
  { endedUntil, spared }: Logout,
  now: StoreMs,
  note: string,
): Room {
  const { sql, end } = deps;
  const evict = (used: Used[], excess: number) =>
    takeExcess(used, excess, LIMIT_WINDOW).map(({ sid }) => end(sid, "session_limit", now, note, subject));
  const acting = () => sql.actingOf.all(subject, now) as Used[];
  if (actor !== undefined) {
    const own = acting();
    return { evicted: evict(own, own.length - cap + 1), isEnough: true };
  }
  // The sessions are counted only up to this limit. With more of them, one step cannot end enough sessions to make room for the new one,
  // even if MAX_EXPIRED of them have expired, so that a higher count would change nothing.
  const counted = Number(sql.countOf.get(subject, endedUntil, cap + MAX_EXPIRED + FEW)?.count);
  if (counted + spared < cap) return ENOUGH;
  const isMany = counted > MAX_EXPIRED;
  const isCrowded = isMany && Number(sql.countToExamine.get(now, MAX_EXPIRED + 1)?.count) > MAX_EXPIRED;
  if (isCrowded && expireStep(deps, now).ended.length > 0) return { evicted: [], isEnough: false };
  const live =
    isMany && !isCrowded
      ? counted - Number(sql.countExpiredOfMany.get(now, now, subject, endedUntil)?.count)
      : Number(sql.countLiveOf.get(subject, endedUntil, now, cap + FEW)?.count);
  const count = live + spared - acting().length;
  const excess = Math.max(0, count - cap + 1);
  const oldest = count <= FEW ? sql.oldestOfFew : sql.oldest;
  const ending = Math.min(excess, AT_ONCE);
  const evicted = evict(oldest.all(subject, now, ending + LIMIT_WINDOW - 1) as Used[], ending);
  return { evicted, isEnough: excess <= AT_ONCE };
}
