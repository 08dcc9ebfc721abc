/** Pages of a subject's sessions: newest first by (creation, sid), as both stores order them. */
import { InvalidCursor } from "../session/ports.ts";
import { parseSessionId, type Session, type SessionId } from "../session/words.ts";

/** The last session of a page; the next one starts after it, even if it has ended meanwhile. */
export type PagePosition = { readonly createdAt: number; readonly sid: SessionId };

export function formatPosition({ createdAt, sid }: Session): string {
  return `${createdAt}.${sid}`;
}

/** @throws InvalidCursor */
export function parsePosition(text: string): PagePosition {
  const [, createdAt, sid] = /^(\d{1,15})\.(.*)$/.exec(text) ?? [];
  const parsed = sid === undefined ? undefined : parseSessionId(sid);
  if (parsed === undefined) throw new InvalidCursor("not a page of this list");
  return { createdAt: Number(createdAt), sid: parsed };
}
