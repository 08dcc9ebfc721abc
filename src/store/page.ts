/** Positions in lists of sessions. Both stores list sessions newest first, by time of creation, then by session id. */
import { parseSessionId, type Session, type SessionId } from "../session/model.ts";
import { InvalidCursor } from "../session/ports.ts";
import { type StoreMs, storeMs } from "../session/time.ts";

/** The last session of a page. The next page starts after this session, even if it has ended in the meantime. */
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

export function formatPosition({ createdAt, sid }: PagePosition): string {
  return `${createdAt}.${sid}`;
}

/** Returns those of the sessions that come after a position, in the order of lists: newest first. */
export function afterPosition(sessions: readonly Session[], position: PagePosition): Session[] {
  return sessions.filter((session) => newestFirst(position, session) < 0).sort(newestFirst);
}

function newestFirst(a: PagePosition, b: PagePosition): number {
  return b.createdAt - a.createdAt || (a.sid < b.sid ? 1 : a.sid > b.sid ? -1 : 0);
}
