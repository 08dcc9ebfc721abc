/** Signals in the embedded store: one log with one partition, which all processes on the file share. */
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
  WaitingSignal,
} from "../../signals/ports.ts";
import { cursorOf, NO_SESSION, type Position, positionOf, signalOf } from "../signal-text.ts";
import type { SignalSteps } from "./signal-steps.ts";
import type { Statements } from "./statements.ts";
import { EmbeddedSubscriptions, type SubscriptionRow } from "./subscriptions.ts";
import type { Transactions } from "./transactions.ts";

type Holder = { readonly holder: string; readonly fence: number; readonly held_until: StoreMs };

type SignalRow = Position & {
  readonly sid: SessionId;
  readonly ended_at: number;
  readonly reason: string;
  readonly client: string;
  readonly subject: string;
};

export function createEmbeddedSignals(sql: Statements, steps: SignalSteps, transactions: Transactions): SignalStore {
  return {
    log: new EmbeddedSignalLog(sql, steps, transactions),
    subscriptions: new EmbeddedSubscriptions(sql, transactions),
  };
}

class EmbeddedSignalLog implements SignalLog {
  readonly partitions = 1;
  readonly #sql: Statements;
  readonly #steps: SignalSteps;
  readonly #transactions: Transactions;

  constructor(sql: Statements, steps: SignalSteps, transactions: Transactions) {
    this.#sql = sql;
    this.#steps = steps;
    this.#transactions = transactions;
  }

  partitionOf(): number {
    return 0;
  }

  async lease(partitions: readonly number[], holder: string, ms: number): Promise<readonly Lease[]> {
    if (partitions.length === 0) return [];
    return this.#transactions.write("NORMAL", (now) => {
      const sql = this.#sql;
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

  async release(leases: readonly Lease[]): Promise<void> {
    for (const { holder } of leases) await this.lease([0], holder, 0);
  }

  async ends(): Promise<readonly Cursor[]> {
    return this.#transactions.read(() => {
      const end = cursorOf(this.#sql.lastSignal.get() as Position);
      return [(this.#steps.pending() === undefined ? end : `${end}+`) as Cursor];
    });
  }

  async read(_partition: number, after: Cursor, limit: number): Promise<ReadOutcome> {
    const pending = this.#transactions.read(() => this.#steps.pending());
    if (pending !== undefined) this.#transactions.write("NORMAL", () => this.#steps.continueEndOfAll());
    return this.#transactions.read(() => this.#read(positionOf(after), limit));
  }

  #read({ number, sid }: Position, limit: number): ReadOutcome {
    const last = this.#sql.lastSignal.get() as Position;
    if (number > last.number) return { ok: false, reason: "rewound" };
    const rows = this.#sql.signalsAfter.all(number, limit + 1) as SignalRow[];
    const oldest = rows[0]?.number ?? last.number + 1;
    if (oldest === number) {
      if (rows[0]?.sid !== sid) return { ok: false, reason: "rewound" };
      rows.shift();
    } else if (oldest > number + 1) {
      const before = cursorOf({ number: oldest - 1, sid: NO_SESSION });
      return { ok: false, reason: "behind", oldest: before, lost: oldest - 1 - number };
    }
    const signals = rows.slice(0, limit).map((row) => ({
      signal: signalOf({ ...row, endedAt: row.ended_at }),
      cursor: cursorOf(row),
    }));
    return { ok: true, signals, more: signals.length === limit || this.#steps.pending() !== undefined };
  }

  async cursors(): Promise<ReadonlyMap<string, Cursor>> {
    return this.#transactions.read(() => {
      const rows = this.#sql.subscriptions.all() as SubscriptionRow[];
      return new Map(rows.map((row) => [row.id, cursorOf(row)]));
    });
  }

  async oldestWaiting(): Promise<ReadonlyMap<string, WaitingSignal>> {
    return this.#transactions.read(() => {
      const rows = this.#sql.waitingSignals.all() as (Pick<SignalRow, "sid" | "ended_at"> & { readonly id: string })[];
      return new Map(rows.map((row) => [row.id, { sessionId: row.sid, endedAt: storeMs(row.ended_at) }]));
    });
  }

  async positions(subscription: string): Promise<readonly Cursor[]> {
    const row = this.#transactions.read(() => this.#sql.subscription.get(subscription)) as SubscriptionRow | undefined;
    return [row === undefined ? NO_CURSOR : cursorOf(row)];
  }

  async advance(lease: Lease, subscription: string, to: Cursor, counts: DeliveryCounts): Promise<AdvanceOutcome> {
    return this.#transactions.write("NORMAL", (): AdvanceOutcome => {
      const { holder, fence } = this.#sql.signalState.get() as Holder;
      const isKnown = this.#sql.subscription.get(subscription) !== undefined;
      if (holder !== lease.holder || fence !== lease.fence || !isKnown) return { ok: false, reason: "lost" };
      return this.#advance(subscription, to, counts);
    });
  }

  async pass(_partition: number, subscription: string, from: Cursor, to: Cursor, counts: DeliveryCounts) {
    return this.#transactions.write("NORMAL", () => {
      const row = this.#sql.subscription.get(subscription) as SubscriptionRow | undefined;
      return row !== undefined && cursorOf(row) === from && this.#advance(subscription, to, counts).ok;
    });
  }

  #advance(subscription: string, to: Cursor, counts: DeliveryCounts): AdvanceOutcome {
    const sql = this.#sql;
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
}

/** Stands for the cursor of a subscription that does not exist. */
const NO_CURSOR = "" as Cursor;
/** A lease that lasts longer than this was taken before the clock was set back. */
const LONGEST_LEASE_MS = 600_000;
