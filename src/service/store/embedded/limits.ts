/** Applies a limit on the sessions of a subject. Each step runs within a transaction that the store (store.ts) has opened. */
import { groupOf, MAX_LISTED, type SessionLimit, takeExcess, windowOf } from "../../session/admin/limit.ts";
import type { NewSession, Session, SessionId } from "../../session/model.ts";
import { type StoreMs, storeMs } from "../../session/time.ts";
import type { PagePosition } from "../search.ts";
import { type FoundRow, sessionOf } from "./rows.ts";
import { AT_ONCE, FEW, type SubjectDeps } from "./subject-steps.ts";

/** How many sessions one step examines, in about a millisecond. */
const EXAMINED = 200;

/** What earlier steps have found, if a subject has more sessions than one step examines. */
export type LimitProgress = { readonly after: PagePosition; readonly known: readonly SessionId[] };

const START: LimitProgress = { after: { createdAt: storeMs(0), sid: "" as SessionId }, known: [] };

/**
 * `within`: the session may be created now, and these sessions have ended for it. `more`: the next step must continue with this progress.
 * `evicted`: these sessions have ended, and another step must follow, from the start.
 */
export type LimitStep =
  | { readonly state: "within"; readonly evicted: readonly SessionId[] }
  | { readonly state: "more"; readonly progress: LimitProgress }
  | { readonly state: "refused"; readonly live: readonly Session[] }
  | { readonly state: "evicted"; readonly evicted: readonly SessionId[] };

const WITHIN: LimitStep = { state: "within", evicted: [] };

/** @param replaced the live session that the new one replaces, if there is one */
export function limitStep(
  { sql, sessions, end }: SubjectDeps,
  limit: SessionLimit,
  session: NewSession,
  replaced: Session | undefined,
  { after, known }: LimitProgress = START,
  now: StoreMs,
  note: string,
): LimitStep {
  const { subject } = session;
  const group = groupOf(session, limit.scope);
  const isCounted = (other: Session) =>
    other.subject === subject && other.actor === undefined && groupOf(other, limit.scope) === group;
  if (replaced !== undefined && isCounted(replaced)) return WITHIN;
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
  const counted = found.map(sessionOf).filter(isCounted);
  const window = windowOf(limit);
  if (!isAll && last !== undefined && counted.length < limit.maxSessions + window) {
    const progress = { after: { createdAt: last.created_at, sid: last.sid }, known: counted.map(({ sid }) => sid) };
    return { state: "more", progress };
  }
  const excess = counted.length - limit.maxSessions + 1;
  if (excess <= 0) return WITHIN;
  if (limit.whenExceeded === "refuse") return { state: "refused", live: takeExcess(counted, MAX_LISTED, window) };
  // The last sessions of a part of the list are not ended, since later ones may be among the oldest by then.
  const ending = Math.min(excess, AT_ONCE, isAll ? excess : counted.length - window + 1);
  const evicted = takeExcess(counted, ending, window).map(({ sid }) => sid);
  for (const sid of evicted) end(sid, "session_limit", now, note, subject);
  return isAll && ending === excess ? { state: "within", evicted } : { state: "evicted", evicted };
}
