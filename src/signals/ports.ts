/**
 * The interfaces that signals need from the store. As in session/ports.ts, each verb is one atomic step and throws StoreUnavailable.
 *
 * The log has partitions. What ends a session appends its signal to the log of the session's partition in the same step, while there is
 * a subscription. So the order of a partition is the order of a session's signals, too. One instance at a time reads a partition, for all
 * subscriptions: it holds the partition's lease. Each subscription has its own cursor in each partition. The cursor is stored
 * with the log, so that a failover to older data moves both back together.
 */
import type { Revocation } from "../session/model.ts";
import type { SessionStore } from "../session/ports.ts";
import type { WallMs } from "../session/time.ts";
import type {
  DeliveryError,
  KnownSubscription,
  Signal,
  Subscription,
  SubscriptionDefinition,
  SubscriptionState,
} from "./model.ts";

/** A position in one partition's log: opaque, and valid in that partition only. */
export type Cursor = string & { readonly __brand: "SignalCursor" };

/** The right to read a partition. `fence` differs from that of each earlier holder. */
export type Lease = { readonly partition: number; readonly holder: string; readonly fence: number };

/** A signal, and the cursor after it. */
export type LoggedSignal = { readonly signal: Signal; readonly cursor: Cursor };

export type ReadOutcome =
  | {
      readonly ok: true;
      readonly signals: readonly LoggedSignal[];
      /** Whether there may be more now: to be read at once. */
      readonly more: boolean;
    }
  /**
   * - `behind`: the cursor is older than the log. `oldest` is a cursor from which reading continues; `lost` signals are between.
   * - `rewound`: the store has lost the position (it failed over to older data). Stored cursors are valid: read on from them.
   */
  | { readonly ok: false; readonly reason: "behind"; readonly oldest: Cursor; readonly lost: number }
  | { readonly ok: false; readonly reason: "rewound" };

/** `lost`: another instance has the lease, or the subscription was deleted: stop without a trace. `rewound`: as above. */
export type AdvanceOutcome = { readonly ok: true } | { readonly ok: false; readonly reason: "lost" | "rewound" };

export interface SignalLog {
  /** How many partitions there are: 0 to `partitions - 1`. */
  readonly partitions: number;

  /** Returns the partition of a hint of `onRevocation` (session/ports.ts). No I/O. */
  partitionOf(hint: Pick<Revocation, "sid">): number;

  /**
   * Takes or extends the leases of partitions, for `ms` from now on.
   *
   * @param holder names the instance: letters and digits
   * @returns those that it holds now; others are held by other instances
   */
  lease(partitions: readonly number[], holder: string, ms: number): Promise<readonly Lease[]>;

  /** Gives leases back, so that other instances need not wait. */
  release(leases: readonly Lease[]): Promise<void>;

  /** Returns the end of each partition's log, so that what is at its end already need not be read. It costs little: once a second. */
  ends(): Promise<readonly Cursor[]>;

  /** Returns at most `limit` signals after a cursor. */
  read(partition: number, after: Cursor, limit: number): Promise<ReadOutcome>;

  /** Returns the stored cursors of a partition, by subscription. */
  cursors(partition: number): Promise<ReadonlyMap<string, Cursor>>;

  /** Moves a subscription's cursor, and counts what was accepted and given up on the way. */
  advance(lease: Lease, subscription: string, to: Cursor, counts: DeliveryCounts): Promise<AdvanceOutcome>;

  /** Returns for each subscription the oldest signal that has not been delivered. It shows operators how late signals are. */
  oldestWaiting(): Promise<ReadonlyMap<string, WaitingSignal>>;

  /** Returns the stored cursors of one subscription, by partition; each is empty if there is no such subscription. */
  positions(subscription: string): Promise<readonly Cursor[]>;

  /**
   * Moves the cursor of a subscription that is polled, as `advance` does, and without a lease: several instances serve polls.
   *
   * @returns false if the cursor is not at `from` any more, or the store has lost the position
   */
  pass(partition: number, subscription: string, from: Cursor, to: Cursor, counts: DeliveryCounts): Promise<boolean>;
}

export type WaitingSignal = Pick<Signal, "sessionId" | "endedAt">;

export type DeliveryCounts = { readonly delivered: number; readonly deadLetters: number };

export interface SubscriptionStore {
  /**
   * Adds a subscription, at the present end of the log: endings that are acknowledged after this one resolves are delivered.
   *
   * @returns false if there are as many as there may be, or if it is there already
   */
  create(id: string, definition: SubscriptionDefinition, createdAt: WallMs): Promise<boolean>;

  get(id: string): Promise<Subscription | undefined>;

  /** All of them, by id. */
  list(): Promise<readonly Subscription[]>;

  /** All of them, without what is counted, which costs the store little. */
  known(): Promise<readonly KnownSubscription[]>;

  /** Finishes what an instance has left that was killed while it created or deleted a subscription. */
  repair(): Promise<void>;

  /**
   * Replaces the definition.
   *
   * @param before the definition that it was made of (`definitionOf`)
   * @returns false if another one is stored now, or if there is no such subscription; so do the other verbs
   */
  define(id: string, definition: SubscriptionDefinition, before: SubscriptionDefinition): Promise<boolean>;

  /**
   * Pauses or resumes. The cursors stay; resuming sets `failures` to 0.
   *
   * @param before the state from which alone it changes
   */
  setState(id: string, state: SubscriptionState, before?: SubscriptionState): Promise<boolean>;

  /** Moves all cursors to the present end of the log: what is before is not delivered. The counts stay. */
  restart(id: string): Promise<boolean>;

  /** Records failed attempts, or with undefined that an attempt succeeded: `failures` is 0 again. */
  recordAttempt(
    id: string,
    failure: { readonly error: DeliveryError; readonly at: WallMs } | undefined,
  ): Promise<boolean>;

  /** Removes a subscription and its cursors; without the last one, endings append nothing any more. */
  delete(id: string): Promise<boolean>;
}

/** What a store offers for signals. */
export interface SignalStore {
  readonly log: SignalLog;
  readonly subscriptions: SubscriptionStore;
}

export type StoreWithSignals = SessionStore & { readonly signals: SignalStore };

/** How long the log keeps, in ms, what a subscription has not read, unless it is configured. */
export const DEFAULT_RETENTION_MS = 86_400_000;
