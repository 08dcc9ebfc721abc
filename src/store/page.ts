/** Pages of a subject's sessions: newest first by (creation, sid), as both stores order them. */

import { parseSessionId, type Session, type SessionId } from "../session/model.ts";
import { InvalidCursor, type SessionPage } from "../session/ports.ts";

/** The last session of a page; the next one starts after it, even if it has ended meanwhile. */
export type PagePosition = { readonly createdAt: number; readonly sid: SessionId };

/** Before every session: the first page starts after this. */
const TOP: PagePosition = { createdAt: Number.MAX_SAFE_INTEGER, sid: "" as SessionId };

/** @throws InvalidCursor */
export function parsePosition(text: string | undefined): PagePosition {
  if (text === undefined) return TOP;
  const [, createdAt, sid] = /^(\d{1,15})\.(.*)$/.exec(text) ?? [];
  const parsed = sid === undefined ? undefined : parseSessionId(sid);
  if (parsed === undefined) throw new InvalidCursor("not a page of this list");
  return { createdAt: Number(createdAt), sid: parsed };
}

export function formatPosition({ createdAt, sid }: PagePosition): string {
  return `${createdAt}.${sid}`;
}

/** The page at the start of `sessions`, which are in order and, if there are more than `limit`, go on. */
export function pageOf(sessions: readonly Session[], limit: number): SessionPage {
  const page = sessions.slice(0, limit);
  const last = page.at(-1);
  return { sessions: page, next: sessions.length > limit && last ? formatPosition(last) : undefined };
}

/** One page of all the sessions of a subject, in any order. */
export function paginate(sessions: readonly Session[], limit: number, position: PagePosition): SessionPage {
  const rest = sessions.filter((session) => newestFirst(position, session) < 0);
  return pageOf(rest.sort(newestFirst), limit);
}

function newestFirst(a: PagePosition, b: PagePosition): number {
  return b.createdAt - a.createdAt || (a.sid < b.sid ? 1 : a.sid > b.sid ? -1 : 0);
}
