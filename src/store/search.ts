/** Searches the sessions of all subjects, newest first, at a bounded cost whatever the filter is. */
import { EVERY_SESSION, isSelective, matches, type SessionFilter } from "../session/filter.ts";
import type { Session } from "../session/model.ts";
import type { SessionPage } from "../session/ports.ts";
import { formatPosition, type PagePosition, parsePosition } from "./page.ts";

/** How many sessions one page examines at most. So a page may have fewer sessions than requested, and still a next page. */
export const MAX_EXAMINED = 1_000;
/** How many sessions are read at once while it is not known how many of them match. */
const BATCH = 128;

/** A position in the order of creation, and the session at it if it is live. */
export type Candidate = { readonly position: PagePosition; readonly session: Session | undefined };

/** Returns candidates after a position, newest first; fewer than `count` if no more follow. Each call begins where the last one ended. */
export type TakeCandidates = (after: PagePosition, count: number) => Promise<readonly Candidate[]>;

/** Returns the position at which a search starts. @throws InvalidCursor */
function startOf(from: string | undefined, { createdBefore }: SessionFilter): PagePosition {
  const position = parsePosition(from);
  if (createdBefore === undefined || position.createdAt < createdBefore) return position;
  return { createdAt: createdBefore, sid: "" as PagePosition["sid"] };
}

export async function search(
  take: TakeCandidates,
  limit: number,
  from: string | undefined,
  filter: SessionFilter = EVERY_SESSION,
): Promise<SessionPage> {
  const start = startOf(from, filter);
  const sessions: Session[] = [];
  const selective = isSelective(filter);
  let last: PagePosition | undefined;
  for (let examined = 0; examined < MAX_EXAMINED; ) {
    const count = Math.min(MAX_EXAMINED - examined, selective ? BATCH : limit + 1 - sessions.length);
    const candidates = await take(last ?? start, count);
    for (const { position, session } of candidates) {
      if (filter.createdFrom !== undefined && position.createdAt < filter.createdFrom)
        return { sessions, next: undefined };
      if (session !== undefined && matches(session, filter)) {
        if (sessions.length === limit) return { sessions, next: last && formatPosition(last) };
        sessions.push(session);
      }
      last = position;
    }
    if (candidates.length < count) return { sessions, next: undefined };
    examined += candidates.length;
  }
  return { sessions, next: last && formatPosition(last) };
}
