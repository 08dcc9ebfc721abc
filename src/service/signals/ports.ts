/**
 * The interfaces that signals need from the store. Each method is one atomic operation and may throw StoreUnavailable.
 *
 * The log has partitions. While there is a subscription, an operation that ends a session also appends the session's signal to the log of
 * its partition, atomically; one that creates a session does so while a subscription asks for that. So a partition has the signals of a
 * session in order. One instance at a time reads a partition, for all subscriptions: it holds the partition's lease. Each subscription has
 * its own cursor in each partition. The cursor is stored with the log, so that a failover to older data moves the log and the cursors back
 * together.
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

/** A position in the log of one partition. It is opaque, and valid only in that partition. */
export type Cursor = string & { readonly __brand: "SignalCursor" };

/** The right to read a partition. Its `fence` differs from that of each earlier holder. */
export type Lease = { readonly partition: number; readonly holder: string; readonly fence: number };

/** A signal, and the cursor that follows it. */
export type LoggedSignal = { readonly signal: Signal; readonly cursor: Cursor };

export type ReadOutcome =
  | {
      readonly ok: true;
      readonly signals: readonly LoggedSignal[];
      /** Whether there may be more signals, which the caller should read at once. */
      readonly more: boolean;
    }
  /**
   * - `behind`: the cursor is older than the log. `oldest` is a cursor from which reading continues; `lost` is the number of signals in
   *   between, which were dropped.
   * - `rewound`: the store has lost the position (it failed over to older data). Stored cursors are valid: read on from them.
   */
  | { readonly ok: false; readonly reason: "behind"; readonly oldest: Cursor; readonly lost: number }
  | { readonly ok: false; readonly reason: "rewound" };

/** `lost`: another instance has the lease, or the subscription was deleted; the caller stops silently. `rewound`: as in ReadOutcome. */
export type AdvanceOutcome = { readonly ok: true } | { readonly ok: false; readonly reason: "lost" | "rewound" };

export interface SignalLog {
  /** The number of partitions; they are numbered from 0. */
  readonly partitions: number;

  /** Returns the partition of a session of which `onRevocation` (session/ports.ts) reports the end. It does no I/O. */
  partitionOf(hint: Pick<Revocation, "sid">): number;

  /** Acquires or extends leases for `ms`, and returns those that the instance has now. @param holder its name: letters and digits */
  lease(partitions: readonly number[], holder: string, ms: number): Promise<readonly Lease[]>;

  /** Releases leases, so that other instances need not wait until they expire. */
  release(leases: readonly Lease[]): Promise<void>;

  /** Returns the end of each partition's log, so that partitions without new signals need not be read. It is called once a second. */
  ends(): Promise<readonly Cursor[]>;

  read(partition: number, after: Cursor, limit: number): Promise<ReadOutcome>;

  /** Returns the stored cursors of a partition, by subscription. */
  cursors(partition: number): Promise<ReadonlyMap<string, Cursor>>;

  /** Moves a subscription's cursor, and adds to the numbers of its accepted and given-up signals. */
  advance(lease: Lease, subscription: string, to: Cursor, counts: DeliveryCounts): Promise<AdvanceOutcome>;

  /** Returns for each subscription the oldest signal that has not been delivered, and how many have not: how late its signals are. */
  oldestWaiting(): Promise<ReadonlyMap<string, WaitingSignal>>;

  /**
   * Returns signals of a subject, each with the subscriptions that have not read it yet. A page may have fewer than `limit`, or none.
   * @param after the `next` of the previous page
   */
  ofSubject(subject: string, after: number, limit: number): Promise<SignalPage>;

  /** Returns the stored cursors of one subscription, by partition. They are empty if the subscription does not exist. */
  positions(subscription: string): Promise<readonly Cursor[]>;

  /**
   * Works as `advance`, but without a lease, because several instances serve polls. Returns false if the cursor is not at `from`, or if the
   * store has lost it.
   */
  pass(partition: number, subscription: string, from: Cursor, to: Cursor, counts: DeliveryCounts): Promise<boolean>;
}

/** `count`: how many log entries follow the subscription's cursor. Its filter may exclude some of them. */
export type WaitingSignal = Pick<Signal, "sessionId" | "happenedAt"> & { readonly count: number };

export type SignalPage = {
  readonly signals: readonly { readonly signal: Signal; readonly unreadBy: readonly string[] }[];
  /** The place at which the next page starts; undefined on the last one. */
  readonly next: number | undefined;
};

export type DeliveryCounts = { readonly delivered: number; readonly deadLetters: number };

export interface SubscriptionStore {
  /**
   * Adds a subscription at the present end of the log: endings that are acknowledged after this call resolves are delivered. Returns false
   * if it exists already, or if there are as many as are allowed.
   */
  create(id: string, definition: SubscriptionDefinition, createdAt: WallMs): Promise<boolean>;

  get(id: string): Promise<Subscription | undefined>;

  list(): Promise<readonly Subscription[]>;

  /** Returns all subscriptions without their counters, which costs the store little. */
  known(): Promise<readonly KnownSubscription[]>;

  /** Completes the creation or deletion of a subscription that a killed instance has left unfinished. */
  repair(): Promise<void>;

  /**
   * Replaces the definition if `before`, from which the new one was made (`definitionOf`), is still stored; otherwise returns false.
   * This method and those that follow also return false if the subscription does not exist.
   */
  define(id: string, definition: SubscriptionDefinition, before: SubscriptionDefinition): Promise<boolean>;

  /** Pauses or resumes a subscription, only from the state `before` if it is given. Cursors stay; resuming sets `failures` to 0. */
  setState(id: string, state: SubscriptionState, before?: SubscriptionState): Promise<boolean>;

  /** Moves all cursors to the present end of the log, so that earlier signals are not delivered. The counters stay. */
  restart(id: string): Promise<boolean>;

  /** Records a failed attempt; or, if the error is undefined, a success, which sets `failures` to 0. */
  recordAttempt(
    id: string,
    failure: { readonly error: DeliveryError; readonly at: WallMs } | undefined,
  ): Promise<boolean>;

  /** Deletes a subscription and its cursors. Without any subscription, endings append nothing to the log. */
  delete(id: string): Promise<boolean>;
}

export interface SignalStore {
  readonly log: SignalLog;
  readonly subscriptions: SubscriptionStore;
}

export type StoreWithSignals = SessionStore & { readonly signals: SignalStore };

/** How long the log keeps signals that a subscription has not read, in ms. This is the default of the configuration. */
export const DEFAULT_RETENTION_MS = 86_400_000;
