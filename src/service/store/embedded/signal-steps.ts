/** Appends the signals of ended sessions to the signal log, in the transaction that ends them. Without a subscription this costs little. */
import type { Session, SessionId } from "../../session/model.ts";
import type { StoreMs } from "../../session/time.ts";
import { SIGNAL_EVENTS, type SignalReason } from "../../signals/model.ts";
import { actorIn, type SessionRow, type SessionRows } from "./rows.ts";
import type { Statements } from "./statements.ts";

/** How many signals one transaction appends after a logout of everyone, in about 1 ms. */
const AT_ONCE = 64;

/** A logout of everyone. Its signals have been appended up to the session at (`from_time`, `from_sid`). */
type EndOfAll = {
  readonly created_after: StoreMs;
  readonly created_until: StoreMs;
  readonly ended_at: StoreMs;
  readonly from_time: StoreMs;
  readonly from_sid: string;
};

type Row = Pick<SessionRow, "sid" | "subject" | "created_at" | "fixed">;

export type SignalSteps = ReturnType<typeof createSignalSteps>;

export function createSignalSteps(sql: Statements, sessions: Pick<SessionRows, "get">, retentionMs: number) {
  /** Returns the logout of everyone whose signals are not all appended yet. */
  const pending = (): EndOfAll | undefined => {
    const state = sql.signalState.get() as EndOfAll;
    return state.created_until > 0 ? state : undefined;
  };
  const appendSignalOfAll = (row: Row, endedAt: StoreMs) =>
    sql.appendSignal.run(row.sid, endedAt, "revoked_all", clientOf(row), row.subject, actorOf(row));

  return {
    pending,

    /** @param subject the subject of a session that is not in the store */
    append(sid: SessionId, reason: SignalReason, now: StoreMs, subject: string): void {
      if (sql.isSubscribed.get() === undefined) return;
      const row = sessions.get(sid);
      const [client, actor] = row === undefined ? ["", ""] : [clientOf(row), actorOf(row)];
      sql.appendSignal.run(sid, now, reason, client, row?.subject ?? subject, actor);
      sql.sweepSignals.run(now - retentionMs);
    },

    appendCreated({ sid, subject, clientId, actor }: Session, newDevice: boolean, now: StoreMs): void {
      if (sql.isSubscribed.get() === undefined) return;
      for (const notice of newDevice ? (["created", "new_device"] as const) : (["created"] as const)) {
        if (sql.isWanted.get(SIGNAL_EVENTS[notice]) === undefined) continue;
        sql.appendSignal.run(sid, now, notice, clientId, subject, actor?.subject ?? "");
        sql.sweepSignals.run(now - retentionMs);
      }
    },

    appendUpdated({ sid, subject, clientId, version = 0, actor }: Session, now: StoreMs): void {
      if (sql.isWanted.get(SIGNAL_EVENTS.updated) === undefined) return;
      sql.appendSignal.run(sid, now, `updated:${version}`, clientId, subject, actor?.subject ?? "");
      sql.sweepSignals.run(now - retentionMs);
    },

    /** @param before the sessions that were created up to this time had ended before this logout */
    beginEndOfAll(before: number, until: StoreMs, now: StoreMs): void {
      if (sql.isSubscribed.get() === undefined || until <= before) return;
      const { created_after = before, from_time = 0, from_sid = "" } = pending() ?? {};
      sql.beginSignals.run(created_after, until, now, from_time, from_sid);
    },

    continueEndOfAll(): void {
      const under = pending();
      if (under === undefined) return;
      const { created_after, created_until, ended_at, from_time, from_sid } = under;
      const rows = sql.endedWithAll.all(from_time, from_sid, created_after, created_until, AT_ONCE) as Row[];
      for (const row of rows) appendSignalOfAll(row, ended_at);
      const last = rows.at(-1);
      if (rows.length < AT_ONCE || last === undefined) sql.beginSignals.run(0, 0, 0, 0, "");
      else sql.beginSignals.run(created_after, created_until, ended_at, last.created_at, last.sid);
    },

    /** Appends the signal of a session that ended in a logout of everyone, once. The session's row must still exist. */
    appendEndOfAll(sid: SessionId): void {
      const under = pending();
      if (under === undefined) return;
      const row = sessions.get(sid);
      if (row === undefined || row.created_at <= under.created_after || row.created_at > under.created_until) return;
      const isDone = row.created_at < under.from_time || (row.created_at === under.from_time && sid <= under.from_sid);
      if (!isDone) appendSignalOfAll(row, under.ended_at);
    },
  };
}

function actorOf({ fixed }: Pick<SessionRow, "fixed">): string {
  return actorIn(fixed) ?? "";
}

function clientOf({ fixed }: Pick<SessionRow, "fixed">): string {
  return (JSON.parse(fixed) as { readonly clientId: string }).clientId;
}
