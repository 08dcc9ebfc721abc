/**
 * The revocation feed. Each process reads the store's log only once, however many watchers there are.
 *
 * Batches arrive at a steady interval while the store responds, with or without revocations. In an outage, batches are sent only when
 * there is something new, and are marked as incomplete. Every revocation is delivered at least once.
 *
 * Everything that has not expired is kept in memory, so that no watcher costs the store a read, whatever its cursor. All times
 * of revocations and batches are the store's: they are compared with each other, never with a clock.
 */
import { ServiceError } from "../errors.ts";
import type { LogEntry } from "../model.ts";
import { type Clock, InvalidCursor, type RevocationBatch, type SessionStore, StoreUnavailable } from "../ports.ts";
import { latest, storeMs } from "../time.ts";
import { type FeedBatch, FeedBatches, FeedLog, type NextBatch } from "./batches.ts";
import { pushAtOnce, type TakeBatch, type WatchState } from "./push.ts";
import { FeedWakes } from "./wakes.ts";

/** How often the log is read and a batch is sent, in ms, even without a notification from the store: half of the promised heartbeat. */
const HEARTBEAT_INTERVAL_MS = 500;
/**
 * The greatest age of the last reading of the log, in ms, at which batches are marked as complete. A new watcher takes its first batch for
 * new, although the batch may be this old. Verifiers reconnect only after a longer silence (3 s).
 */
const MAX_READING_AGE_MS = 2000;
/** How long a watcher may take to accept a batch, in ms. After that the watch ends, and the watcher can resume at its cursor. */
const WATCHER_TIMEOUT_MS = 10_000;

export type { FeedBatch } from "./batches.ts";
export type { TakeBatch } from "./push.ts";

export type FeedState = {
  readonly watchers: number;
  /** How long ago the last reading that reached the end of the log began, in ms; undefined before there was one. */
  readonly ageMs: number | undefined;
  readonly entries: number;
};

type Deps = {
  readonly store: Pick<SessionStore, "revocations" | "onRevocation">;
  /** A monotonic clock in ms, which measures how old the last reading is. */
  readonly clock: Clock;
  /** Measures how long watchers take: the time in ms that this process was running, and so could notice that they took a batch. */
  readonly ranMs: Clock;
  /** Measures what waking the watchers costs: the processor time of this process, ms. */
  readonly cpuMs: Clock;
  /** The unique name of this process, in base64url. After a restart the process has a new name. */
  readonly instance: string;
  readonly onError: (error: unknown) => void;
};

/**
 * Resolves once other events have been handled. After each batch that is not the last of many: a quick watcher would otherwise get all of a
 * long log in one turn of the event loop, and everybody else would wait.
 */
const othersServed = () => new Promise(setImmediate);

/** Returns the entries of a batch of the store in the order in which they expire, which is the order in which they are forgotten. */
function inOrder({ revocations, staleMarks }: RevocationBatch): readonly LogEntry[] {
  if (staleMarks.length === 0) return revocations;
  return [...revocations, ...staleMarks].sort((one, other) => one.expiresAt - other.expiresAt);
}

export class RevocationFeed {
  readonly #deps: Deps;
  readonly #log = new FeedLog();
  readonly #stopHints: () => void;
  readonly #following: Promise<void>;
  readonly #firstRead = Promise.withResolvers<void>();
  readonly #batches: FeedBatches;
  readonly #wakes: FeedWakes;
  #storeCursor = "";
  #asOf = storeMs(0);
  #watchers = 0;
  #readAt: number | undefined;
  /** All sessions that were created up to this time have ended. It never decreases: a watcher may have missed the latest value. */
  #revokedUntil = storeMs(0);
  #storeResponds = false;
  #closed = false;
  /** Whether a notification has said, since the last reading began, that entries may have been missed. */
  #missed = false;
  #readNow = () => {};

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#batches = new FeedBatches(this.#log, deps.instance);
    this.#wakes = new FeedWakes(deps.cpuMs);
    this.#stopHints = deps.store.onRevocation((hint) => this.#takeHint(hint));
    this.#following = this.#follow();
  }

  /** Sends the watchers a batch at once, even in an outage. It is called for changes that are not in the log, such as a revoked key. */
  wakeWatchers(): void {
    this.#wakes.wake();
  }

  /**
   * @param from the cursor of the last batch seen; empty for everything that is revoked now
   * @param take receives every batch except the first, which is yielded. Without `take` all batches are yielded, at several times the cost
   * @throws InvalidCursor, StoreUnavailable; a ServiceError when the watcher does not keep up
   */
  async *watch(from: string, signal: AbortSignal, take?: TakeBatch): AsyncGenerator<FeedBatch, void, undefined> {
    this.#parseCursor(from); // An invalid cursor is rejected without waiting.
    this.#watchers++;
    try {
      yield* this.#watch(from, signal, take);
    } finally {
      this.#watchers--;
    }
  }

  state(): FeedState {
    return { watchers: this.#watchers, ageMs: this.#ageMs(), entries: this.#log.end - this.#log.start };
  }

  #ageMs(): number | undefined {
    return this.#readAt === undefined ? undefined : this.#deps.clock() - this.#readAt;
  }

  /** Returns whether the last reading is recent. If the store or the process stalls, the reading becomes old before an error occurs. */
  #isCurrent(): boolean {
    return this.#storeResponds && (this.#ageMs() ?? Number.POSITIVE_INFINITY) <= MAX_READING_AGE_MS;
  }

  async *#watch(from: string, signal: AbortSignal, take?: TakeBatch): AsyncGenerator<FeedBatch, void, undefined> {
    await this.#firstRead.promise;
    if (!this.#storeResponds) throw new StoreUnavailable("the revocation log cannot be read");
    let position = this.#parseCursor(from);
    while (!signal.aborted && !this.#closed) {
      const wakeCount = this.#wakes.count;
      const next = this.#nextBatch(position);
      position = next.position;
      const offeredAt = this.#deps.ranMs();
      yield next.batch;
      this.#requirePace(offeredAt);
      if (!next.isComplete) await othersServed();
      // Revocations may have arrived after the watcher began to take the batch.
      const isBehind = !next.isComplete || wakeCount !== this.#wakes.count;
      if (take !== undefined) await this.#push({ position, isBehind }, take, signal);
      else if (!isBehind) await this.#wakes.next(signal);
    }
    if (this.#closed) throw new ServiceError("E503_UNAVAILABLE", "the service is stopping: resume elsewhere");
  }

  #nextBatch(position: number): NextBatch {
    const facts = { revokedUntil: this.#revokedUntil, asOf: this.#asOf, isCurrent: this.#isCurrent() };
    return this.#batches.after(position, facts);
  }

  /** Passes batches to `take` until the watch ends. */
  async #push(from: WatchState, take: TakeBatch, signal: AbortSignal): Promise<void> {
    const next = (position: number) => (this.#closed ? undefined : this.#nextBatch(position));
    const feed = { wakes: this.#wakes, next };
    for (let place = from; !signal.aborted && !this.#closed; ) {
      const { position, isComplete, wakeCount, taking } = await pushAtOnce(place, take, signal, feed);
      const offeredAt = this.#deps.ranMs();
      await taking;
      this.#requirePace(offeredAt);
      if (!isComplete) await othersServed();
      place = { position, isBehind: !isComplete || wakeCount !== this.#wakes.count };
    }
  }

  /** Ends all watches, and makes new ones end at once. */
  close(): Promise<void> {
    this.#closed = true;
    this.#stopHints();
    this.#readNow();
    this.#wakes.wakeNow();
    return this.#following;
  }

  #takeHint(hint: readonly LogEntry[]): void {
    if (hint.length > 0) {
      this.#log.append(hint, this.#asOf);
      this.wakeWatchers();
    } else {
      this.#missed = true;
      this.#readNow();
    }
  }

  async #follow(): Promise<void> {
    while (!this.#closed) {
      this.#missed = false;
      await this.#read();
      if (this.#missed || this.#closed) continue;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, HEARTBEAT_INTERVAL_MS);
        this.#readNow = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** Reads new entries and wakes the watchers. In an outage the feed sends no batches, and reports the first error. */
  async #read(): Promise<void> {
    const { store, clock, onError } = this.#deps;
    const startedAt = clock();
    try {
      const batch = await store.revocations(this.#storeCursor === "" ? undefined : this.#storeCursor);
      this.#asOf = batch.now;
      this.#readAt = startedAt;
      this.#log.forgetExpired(batch.now);
      const [end, revokedUntil] = [this.#log.end, this.#revokedUntil];
      this.#log.append(inOrder(batch), batch.now);
      this.#revokedUntil = latest(this.#revokedUntil, batch.revokedUntil);
      this.#storeCursor = batch.cursor;
      this.#storeResponds = true;
      if (this.#log.end !== end || this.#revokedUntil !== revokedUntil) this.wakeWatchers();
      else this.#wakes.beat();
    } catch (error) {
      if (this.#storeResponds) onError(error);
      this.#storeResponds = false;
    }
    this.#firstRead.resolve();
  }

  /** Parses a cursor: a position in the memory of one instance. If the cursor is from another instance, everything is delivered again. */
  #parseCursor(text: string): number {
    if (text === "") return this.#log.start;
    const [, givenBy, at] = /^([\w-]+)\.(\d{1,15})$/.exec(text) ?? [];
    if (givenBy === undefined) throw new InvalidCursor("not a cursor of the feed");
    return givenBy === this.#deps.instance ? Math.min(Number(at), this.#log.end) : this.#log.start;
  }

  /** Checks that the watcher accepted a batch in time. @throws ServiceError if it did not */
  #requirePace(offeredAt: number): void {
    if (this.#deps.ranMs() - offeredAt > WATCHER_TIMEOUT_MS) {
      throw new ServiceError("E429_RATE_LIMITED", "the watcher does not keep up: resume from its last cursor");
    }
  }
}
