/** Signals in the embedded store: one log with one partition, shared by all processes that have the file open. */
import type { SessionId } from "../../session/model.ts";
import { type StoreMs, storeMs } from "../../session/time.ts";
import type {
  AdvanceOutcome,
  Cursor,
  DeliveryCounts,
  Lease,
  ReadOutcome,
  SignalLog,
  SignalStore,
} from "../../signals/ports.ts";
import { cursorOf, NO_CURSOR, NO_SESSION, type Position, positionOf, signalOf } from "../signal-text.ts";
import type { SignalSteps } from "./signal-steps.ts";
import type { Statements } from "./statements.ts";
import { createSubscriptions, type SubscriptionRow } from "./subscriptions.ts";
import type { Transactions } from "./transactions.ts";

type Holder = { readonly holder: string; readonly fence: number; readonly held_until: StoreMs };

type SignalRow = Position & {
  readonly sid: SessionId;
  readonly ended_at: number;
  readonly reason: string;
  readonly client: string;
  readonly subject: string;
  readonly actor: string;
};

type WaitingRow = Pick<SignalRow, "sid" | "ended_at"> & { readonly id: string; readonly count: number };

/** A lease that lasts longer than this, in ms, was taken before the clock was set back, and does not count any more. */
const LONGEST_LEASE_MS = 600_000;

type Deps = Transactions & { readonly sql: Statements; readonly signals: SignalSteps };

export function createSignals(deps: Deps): SignalStore {
  return { log: createSignalLog(deps), subscriptions: createSubscriptions(deps.sql, deps) };
}

function createSignalLog({ sql, signals: steps, read, write }: Deps): SignalLog {
  const rowOf = (subscription: string) => sql.subscription.get(subscription) as SubscriptionRow | undefined;
  return {
    partitions: 1,
    partitionOf: () => 0,
    lease: async (partitions, holder, ms) => (partitions.length === 0 ? [] : lease(sql, write, holder, ms)),

    async release(leases) {
      for (const { holder } of leases) lease(sql, write, holder, 0);
    },

    async ends() {
      return read(() => {
        const end = cursorOf(sql.lastSignal.get() as Position);
        return [(steps.pending() === undefined ? end : `${end}+`) as Cursor];
      });
    },

    async read(_partition, after, limit) {
      if (read(() => steps.pending()) !== undefined) write("NORMAL", () => steps.continueEndOfAll());
      return read(() => readSignals(sql, steps, positionOf(after), limit));
    },

    async cursors() {
      const rows = read(() => sql.subscriptions.all()) as SubscriptionRow[];
      return new Map(rows.map((row) => [row.id, cursorOf(row)]));
    },

    async oldestWaiting() {
      const rows = read(() => sql.waitingSignals.all()) as WaitingRow[];
      return new Map(
        rows.map(({ id, sid, ended_at, count }) => [id, { sessionId: sid, happenedAt: storeMs(ended_at), count }]),
      );
    },

    async ofSubject(subject, after, limit) {
      return read(() => {
        const rows = sql.signalsOf.all(subject, after, limit) as SignalRow[];
        const readers = sql.subscriptions.all() as SubscriptionRow[];
        const signals = rows.map((row) => ({
          signal: signalOf({ ...row, happenedAt: row.ended_at }),
          unreadBy: readers.filter(({ number }) => number < row.number).map(({ id }) => id),
        }));
        return { signals, next: rows.length === limit ? rows.at(-1)?.number : undefined };
      });
    },

    async positions(subscription) {
      const row = read(() => rowOf(subscription));
      return [row === undefined ? NO_CURSOR : cursorOf(row)];
    },

    async advance(lease, subscription, to, counts) {
      return write("NORMAL", () => {
        const { holder, fence } = sql.signalState.get() as Holder;
        const isLost = holder !== lease.holder || fence !== lease.fence || rowOf(subscription) === undefined;
        return isLost ? { ok: false, reason: "lost" } : advance(sql, subscription, to, counts);
      });
    },

    async pass(_partition, subscription, from, to, counts) {
      return write("NORMAL", () => {
        const row = rowOf(subscription);
        return row !== undefined && cursorOf(row) === from && advance(sql, subscription, to, counts).ok;
      });
    },
  };
}

/** Acquires or extends the lease of the only partition, or releases it if `ms` is 0. */
function lease(sql: Statements, write: Transactions["write"], holder: string, ms: number): readonly Lease[] {
  return write("NORMAL", (now) => {
    if (sql.isSubscribed.get() === undefined) return [];
    const before = sql.signalState.get() as Holder;
    const left = before.held_until - now;
    const isHeld = before.holder === holder;
    if (!isHeld && left > 0 && left <= Math.max(ms, LONGEST_LEASE_MS)) return [];
    if (!isHeld && ms === 0) return [];
    const fence = isHeld ? before.fence : before.fence + 1;
    sql.holdSignals.run(holder, fence, now + ms);
    return ms === 0 ? [] : [{ partition: 0, holder, fence }];
  });
}

function readSignals(sql: Statements, steps: SignalSteps, { number, sid }: Position, limit: number): ReadOutcome {
  const last = sql.lastSignal.get() as Position;
  if (number > last.number) return { ok: false, reason: "rewound" };
  const rows = sql.signalsAfter.all(number, limit + 1) as SignalRow[];
  const oldest = rows[0]?.number ?? last.number + 1;
  if (oldest === number) {
    if (rows[0]?.sid !== sid) return { ok: false, reason: "rewound" };
    rows.shift();
  } else if (oldest > number + 1) {
    const before = cursorOf({ number: oldest - 1, sid: NO_SESSION });
    return { ok: false, reason: "behind", oldest: before, lost: oldest - 1 - number };
  }
  const signals = rows.slice(0, limit).map((row) => ({
    signal: signalOf({ ...row, happenedAt: row.ended_at }),
    cursor: cursorOf(row),
  }));
  return { ok: true, signals, more: signals.length === limit || steps.pending() !== undefined };
}

function advance(sql: Statements, subscription: string, to: Cursor, counts: DeliveryCounts): AdvanceOutcome {
  const { number, sid } = positionOf(to);
  const there = sql.signal.get(number)?.sid ?? sid;
  if (number > (sql.lastSignal.get() as Position).number || (sid !== NO_SESSION && there !== sid)) {
    return { ok: false, reason: "rewound" };
  }
  sql.advance.run(number, sid, subscription, number);
  sql.countDelivered.run(counts.delivered, counts.deadLetters, subscription);
  sql.trimSignals.run();
  return { ok: true };
}
