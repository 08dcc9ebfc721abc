/** Due records as stores keep them: who asked, as a line of JSON with short names; beside it what the step itself knows. */
import type { DueRecord, Origin } from "../session/events.ts";
import type { EndReason, NewSession, SessionId } from "../session/model.ts";
import { type StoreMs, storeMs } from "../session/time.ts";
import { shortClient, toClient } from "./event-text.ts";

type Short = {
  readonly a?: string | undefined;
  readonly b?: string | undefined;
  readonly q?: string | undefined;
  readonly t?: string | undefined;
  readonly c?: ReturnType<typeof shortClient> | undefined;
  /** Of a reuse: it was found by two holders. */
  readonly h?: 1 | undefined;
};

/** The word for what happened, where it is not the reason of an ending. */
export const CREATED = "created";
export const ENDED_ALL = "revoked_all";

/** The note of a reuse, whose presentation brings none along: that would cost every refresh. As in lua/rotate.lua. */
export const REUSE_NOTES = { reuse: "{}", two_holders: '{"h":1}' } as const;

/** Nothing is to be recorded: ''. @param created the session that the step creates */
export function noteOf(origin: Origin | undefined, created?: NewSession): string {
  if (origin === undefined) return "";
  const { address: a, admin: b, requestId: q, traceId: t } = origin;
  const short: Short = { a, b, q, t, c: created && shortClient(created) };
  return JSON.stringify(short);
}

/**
 * How long a step may take whose caller records all that it has ended, ms. Due records that are older may have been claimed by others: so
 * after a longer one all are left to be claimed.
 */
export const RECORDED_WITHIN_MS = 5_000;

export type DueText = {
  readonly key: string;
  readonly since: StoreMs;
  readonly at: StoreMs;
  /** The reason of an ending, or one of the words above. */
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
