/** The subscriptions to signals in the embedded store. */
import type { WallMs } from "../../session/time.ts";
import {
  type DeliveryError,
  MAX_SUBSCRIPTIONS,
  type Subscription,
  type SubscriptionDefinition,
  type SubscriptionState,
} from "../../signals/model.ts";
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

export class EmbeddedSubscriptions implements SubscriptionStore {
  readonly #sql: Statements;
  readonly #transactions: Transactions;

  constructor(sql: Statements, transactions: Transactions) {
    this.#sql = sql;
    this.#transactions = transactions;
  }

  async create(id: string, definition: SubscriptionDefinition, createdAt: WallMs): Promise<boolean> {
    const text = JSON.stringify(definition);
    return this.#transactions.write("FULL", () => {
      const before = this.#row(id);
      if (before !== undefined) return before.definition === text;
      if (Number(this.#sql.countSubscriptions.get()?.count) >= MAX_SUBSCRIPTIONS) return false;
      const { number, sid } = this.#sql.lastSignal.get() as Position;
      this.#sql.subscribe.run(id, text, createdAt, number, sid);
      return true;
    });
  }

  async get(id: string): Promise<Subscription | undefined> {
    const row = this.#transactions.read(() => this.#row(id));
    return row && subscriptionOfRow(row);
  }

  async list(): Promise<readonly Subscription[]> {
    return this.#transactions.read(() => this.#sql.subscriptions.all() as SubscriptionRow[]).map(subscriptionOfRow);
  }

  known(): Promise<readonly Subscription[]> {
    return this.list();
  }

  /** Subscriptions need no repair in this store, because each change is one transaction. */
  async repair(): Promise<void> {}

  async define(id: string, definition: SubscriptionDefinition, before: SubscriptionDefinition): Promise<boolean> {
    return this.#change(() => this.#sql.define.run(JSON.stringify(definition), id, JSON.stringify(before)));
  }

  async setState(id: string, state: SubscriptionState, before?: SubscriptionState): Promise<boolean> {
    return this.#change(() => {
      const row = before && this.#row(id);
      const because = before?.state === "paused" ? before.because : "";
      if (row !== undefined && (row.state !== before?.state || row.because !== because)) return { changes: 0 };
      return state.state === "paused" ? this.#sql.pause.run(state.because, id) : this.#sql.resume.run(id);
    });
  }

  async restart(id: string): Promise<boolean> {
    return this.#change(() => {
      const { number, sid } = this.#sql.lastSignal.get() as Position;
      return this.#sql.restart.run(number, sid, id);
    });
  }

  async recordAttempt(id: string, failure: { readonly error: DeliveryError; readonly at: WallMs } | undefined) {
    return this.#change(() =>
      failure === undefined ? this.#sql.succeed.run(id) : this.#sql.fail.run(failure.error, failure.at, id),
    );
  }

  async delete(id: string): Promise<boolean> {
    return this.#transactions.write("FULL", () => {
      const isDeleted = this.#sql.unsubscribe.run(id).changes > 0;
      if (this.#sql.isSubscribed.get() === undefined) {
        this.#sql.clearSignals.run();
        this.#sql.beginSignals.run(0, 0, 0, 0, "");
        this.#sql.giveBackSignals.run();
      }
      return isDeleted;
    });
  }

  #change(step: () => { readonly changes: number | bigint }): boolean {
    return this.#transactions.write("FULL", () => step().changes > 0);
  }

  #row(id: string): SubscriptionRow | undefined {
    return this.#sql.subscription.get(id) as SubscriptionRow | undefined;
  }
}

function subscriptionOfRow(row: SubscriptionRow): Subscription {
  const { id, definition, created_at, state, because, failures, last_error, last_error_at, delivered } = row;
  const status = { createdAt: created_at, state, because, failures };
  const error = { lastError: last_error, lastErrorAt: String(last_error_at) };
  return subscriptionOf(id, definition, { ...status, ...error }, { delivered, deadLetters: row.dead_letters });
}
