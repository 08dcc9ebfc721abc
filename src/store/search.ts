/** The search for sessions of all subjects: newest first, and of bounded cost, whatever it looks for. */

import { isSelective, matches, type SessionFilter } from "../session/filter.ts";
import type { Session } from "../session/model.ts";
import type { SessionPage } from "../session/ports.ts";
import { formatPosition, type PagePosition, parsePosition } from "./page.ts";

/** The greatest number of sessions that one page examines. So a page may have fewer sessions than wanted, and still a next page. */
export const MAX_EXAMINED = 1_000;
/** How many sessions are read at once while it is not known how many of them match. */
const BATCH = 128;

/** A place in the order of creation, and the session that is there if it is live. */
export type Candidate = { readonly position: PagePosition; readonly session: Session | undefined };

/** The next candidates, newest first; fewer than `count` are the last ones. */
type TakeCandidates = (count: number) => Promise<readonly Candidate[]>;

/** Returns the position at which a search starts. @throws InvalidCursor */
export function startOf(from: string | undefined, { createdBefore }: SessionFilter): PagePosition {
  const position = parsePosition(from);
  if (createdBefore === undefined || position.createdAt < createdBefore) return position;
  return { createdAt: createdBefore, sid: "" as PagePosition["sid"] };
}

/** @param take begins at the position of `startOf` */
export async function search(take: TakeCandidates, limit: number, filter: SessionFilter): Promise<SessionPage> {
  const sessions: Session[] = [];
  const selective = isSelective(filter);
  let last: PagePosition | undefined;
  for (let examined = 0; examined < MAX_EXAMINED; ) {
    const count = Math.min(MAX_EXAMINED - examined, selective ? BATCH : limit + 1 - sessions.length);
    const candidates = await take(count);
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
