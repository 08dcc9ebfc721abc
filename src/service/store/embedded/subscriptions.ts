import { MAX_SUBSCRIPTIONS, type Subscription } from "../../signals/model.ts";
import type { SubscriptionStore } from "../../signals/ports.ts";
import { type Position, subscriptionOf } from "../signal-text.ts";
import type { Statements } from "./statements.ts";
import type { Transactions } from "./transactions.ts";

export type SubscriptionRow = Position & {
  readonly id: string;
  readonly definition: string;
  readonly created_at: number;
  readonly state: string;
  readonly because: string;
  readonly failures: number;
  readonly last_error: string;
  readonly last_error_at: number;
  readonly delivered: number;
  readonly dead_letters: number;
};

export function createSubscriptions(sql: Statements, { read, write }: Transactions): SubscriptionStore {
  const rowOf = (id: string) => sql.subscription.get(id) as SubscriptionRow | undefined;
  const change = async (step: () => { readonly changes: number | bigint }) => write("FULL", () => step().changes > 0);
  const list = async () => read(() => sql.subscriptions.all() as SubscriptionRow[]).map(subscriptionOfRow);

  return {
    list,
    known: list,

    async create(id, definition, createdAt) {
      const text = JSON.stringify(definition);
      return write("FULL", () => {
        const before = rowOf(id);
        if (before !== undefined) return before.definition === text;
        if (Number(sql.countSubscriptions.get()?.count) >= MAX_SUBSCRIPTIONS) return false;
        const { number, sid } = sql.lastSignal.get() as Position;
        sql.subscribe.run(id, text, createdAt, number, sid);
        return true;
      });
    },

    async get(id) {
      const row = read(() => rowOf(id));
      return row && subscriptionOfRow(row);
    },

    /** Subscriptions need no repair in this store, because each change is one transaction. */
    async repair() {},

    define: (id, definition, before) =>
      change(() => sql.define.run(JSON.stringify(definition), id, JSON.stringify(before))),

    setState: (id, state, before) =>
      change(() => {
        const row = before && rowOf(id);
        const because = before?.state === "paused" ? before.because : "";
        if (row !== undefined && (row.state !== before?.state || row.because !== because)) return { changes: 0 };
        return state.state === "paused" ? sql.pause.run(state.because, id) : sql.resume.run(id);
      }),

    restart: (id) =>
      change(() => {
        const { number, sid } = sql.lastSignal.get() as Position;
        return sql.restart.run(number, sid, id);
      }),

    recordAttempt: (id, failure) =>
      change(() => (failure === undefined ? sql.succeed.run(id) : sql.fail.run(failure.error, failure.at, id))),

    async delete(id) {
      return write("FULL", () => {
        const isDeleted = sql.unsubscribe.run(id).changes > 0;
        if (sql.isSubscribed.get() === undefined) {
          sql.clearSignals.run();
          sql.beginSignals.run(0, 0, 0, 0, "");
          sql.giveBackSignals.run();
        }
        return isDeleted;
      });
    },
  };
}

function subscriptionOfRow(row: SubscriptionRow): Subscription {
  const { id, definition, created_at, state, because, failures, last_error, last_error_at, delivered } = row;
  const status = { createdAt: created_at, state, because, failures };
  const error = { lastError: last_error, lastErrorAt: String(last_error_at) };
  return subscriptionOf(id, definition, { ...status, ...error }, { delivered, deadLetters: row.dead_letters });
}
