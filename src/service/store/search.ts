/** Lists sessions newest first (by time of creation, then by session id), at a bounded cost whatever the filter is. */
import { EVERY_SESSION, isSelective, matches, type SessionFilter } from "../session/admin/filter.ts";
import { parseSessionId, type Session, type SessionId } from "../session/model.ts";
import { InvalidCursor, type SessionPage } from "../session/ports.ts";
import { type StoreMs, storeMs } from "../session/time.ts";

/** The position of a page's last session. The next page starts after this position, even if that session has ended in the meantime. */
export type PagePosition = { readonly createdAt: StoreMs; readonly sid: SessionId };

/** The position before every session, where the first page starts. */
const TOP: PagePosition = { createdAt: storeMs(Number.MAX_SAFE_INTEGER), sid: "" as SessionId };

/** Parses a position. @throws InvalidCursor */
export function parsePosition(text: string | undefined): PagePosition {
  if (text === undefined) return TOP;
  const [, createdAt, sid] = /^(\d{1,15})\.(.*)$/.exec(text) ?? [];
  const parsed = sid === undefined ? undefined : parseSessionId(sid);
  if (parsed === undefined) throw new InvalidCursor("not a page of this list");
  return { createdAt: storeMs(Number(createdAt)), sid: parsed };
}

function formatPosition({ createdAt, sid }: PagePosition): string {
  return `${createdAt}.${sid}`;
}

/** Returns those of the sessions that come after a position, in the order of lists: newest first. */
export function afterPosition(sessions: readonly Session[], position: PagePosition): Session[] {
  return sessions.filter((session) => newestFirst(position, session) < 0).sort(newestFirst);
}

function newestFirst(a: PagePosition, b: PagePosition): number {
  return b.createdAt - a.createdAt || (a.sid < b.sid ? 1 : a.sid > b.sid ? -1 : 0);
}

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
