/** The JSON text of a due record: an event of a session that is still to be recorded (src/service/session/events/events.ts). Both stores use it. */
import type { DueRecord, Origin } from "../session/events/events.ts";
import type { EndReason, NewSession, SessionId } from "../session/model.ts";
import { type StoreMs, storeMs } from "../session/time.ts";
import { shortClient, toClient } from "./event-text.ts";

type Short = {
  readonly a?: string | undefined;
  readonly b?: string | undefined;
  readonly q?: string | undefined;
  readonly t?: string | undefined;
  readonly c?: ReturnType<typeof shortClient> | undefined;
  /** Present if a refresh token was reused, and two clients were found to hold it. */
  readonly h?: 1 | undefined;
};

/** The kind of the event that a session was created, while it waits to be recorded. For an ended session, the kind is the reason. */
export const CREATED = "created";
export const ENDED_ALL = "revoked_all";

/** The event texts for sessions that ended because a token was reused. They are constants for speed; lua/rotate.lua has them, too. */
export const REUSE_NOTES = { reuse: "{}", two_holders: '{"h":1}' } as const;

/** The text of the due record for a session that has expired. No request causes an expiry, so the text is an empty JSON object. */
export const EXPIRED_NOTE = "{}";

/**
 * Returns the text that is stored until the event of a session is recorded: the origin of the request that causes the event, and data of
 * the session if the request creates one. Without an origin, returns ''.
 */
export function noteOf(origin: Origin | undefined, created?: NewSession): string {
  if (origin === undefined) return "";
  const { address: a, admin: b, requestId: q, traceId: t } = origin;
  const short: Short = { a, b, q, t, c: created && shortClient(created) };
  return JSON.stringify(short);
}

/**
 * If a logout of many sessions takes longer than this, in ms, the instance that runs it does not record the events of the ended sessions,
 * because other instances may already be recording them.
 */
export const RECORDED_WITHIN_MS = 5_000;

export type DueText = {
  readonly key: string;
  readonly since: StoreMs;
  readonly at: StoreMs;
  /** The reason why the session ended, or `created`. */
  readonly what: string;
  readonly note: string;
  readonly subject: string;
};

export function dueRecord({ key, since, at, what, note, subject }: DueText): DueRecord {
  const { a, b, q, t, c, h } = JSON.parse(note) as Short;
  const ids = { ...(q !== undefined && { requestId: q }), ...(t !== undefined && { traceId: t }) };
  const common = { time: at, ...(a !== undefined && { address: a }), ...(b !== undefined && { admin: b }) };
  const rest = { key, since, ids };
  if (what === ENDED_ALL)
    return { ...rest, event: { ...common, type: "all_ended", revokedUntil: storeMs(Number(key.slice(1))) } };
  const named = { ...common, ...(subject !== "" && { subject }) };
  if (what === CREATED) {
    return { ...rest, event: { ...named, type: "created", sid: key.slice(1) as SessionId, ...(c && toClient(c)) } };
  }
  const event = { ...named, type: "ended", sid: key as SessionId, reason: what as EndReason } as const;
  return { ...rest, event, ...(h && { cause: "two_holders" }) };
}
