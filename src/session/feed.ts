/**
 * The revocation feed: one follower of the store's log in each process, however many watch.
 *
 * Batches come in a steady beat while the store answers, with or without revocations. In an outage there is at
 * most news, which does not claim to be all of it. What is told is told at least once.
 *
 * All that is not yet forgotten is in memory, so that no watcher makes the store work, wherever he comes from.
 */
import { ServiceError } from "./errors.ts";
import type { Revocation, SessionId } from "./model.ts";
import { type Clock, InvalidCursor, type SessionStore, StoreUnavailable } from "./ports.ts";

/** The beat, ms: how long a lost hint can delay a revocation. Half of the promised heartbeat. */
const BEAT = 500;
/** Revocations in one batch: some 60 KiB. */
const BATCH = 1000;
/** How long a watcher may take to accept a batch, ms. It can come back to where it was. */
const PATIENCE = 10_000;

export type FeedBatch = {
  readonly revocations: readonly Revocation[];
  readonly cursor: string;
  /** All sessions that were created at this time of the store's own or before have ended, ms; 0: none by that. */
  readonly revokedUntil: number;
  /** Whether all that was revoked at `asOf` has been told. Nobody says so while the store does not answer. */
  readonly caughtUp: boolean;
  /** When the log was last read, by the store's clock, ms. */
  readonly asOf: number;
};

export type RevocationFeed = {
  /**
   * @param cursor of the last batch seen; empty for all that is revoked now
   * @throws InvalidCursor, StoreUnavailable; a ServiceError when the watcher does not keep up
   */
  watch(cursor: string, signal: AbortSignal): AsyncGenerator<FeedBatch, void, undefined>;
  /** Tells the watchers at once (of something that is not in the log, such as a revoked key), also in an outage. */
  beat(): void;
  /** Ends every watch, and the following. */
  close(): Promise<void>;
};

type Deps = {
  readonly store: Pick<SessionStore, "revocations" | "onRevocation">;
  /** Measures the patience with watchers, and nothing else: what has expired is told by the store's clock. */
  readonly clock: Clock;
  /** A name that no other process has, nor this one after a restart: base64url. */
  readonly instance: string;
  readonly onError: (error: unknown) => void;
};

/** Starts to follow the log. */
export function followRevocations({ store, clock, instance, onError }: Deps): RevocationFeed {
  const log: Revocation[] = [];
  /** Until when each session is revoked, as far as told: a second ending of it may last longer. */
  const known = new Map<SessionId, number>();
  /** Position of `log[0]` in all that was ever told. */
  let base = 0;
  let cursor = "";
  let asOf = 0;
  /** Only ever later: whoever came from before it may be told again. */
  let revokedUntil = 0;
  let answering = false;
  const tried = Promise.withResolvers<void>();
  let closed = false;
  const waiting = new Set<() => void>();
  let beatCount = 0;

  function beat(): void {
    beatCount++;
    for (const wake of waiting) wake();
  }

  /** Resolves at the next beat, or when `signal` is aborted. */
  function nextBeat(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        waiting.delete(wake);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      waiting.add(wake);
      signal.addEventListener("abort", wake);
      if (signal.aborted) wake();
    });
  }

  function forgetExpired(): void {
    let expired = 0;
    for (const { sid, expiresAt } of log) {
      if (expiresAt > asOf) break;
      if (known.get(sid) === expiresAt) known.delete(sid);
      expired++;
    }
    if (expired > 0) log.splice(0, expired);
    base += expired;
  }

  function append(revocations: readonly Revocation[]): void {
    for (const entry of revocations) {
      const { sid, expiresAt } = entry;
      if (expiresAt <= asOf || expiresAt <= (known.get(sid) ?? 0)) continue;
      known.set(sid, expiresAt);
      log.push(entry);
    }
  }

  /** Reads what is new and beats. An outage makes the feed fall silent, and is told once. */
  async function read(): Promise<void> {
    try {
      const batch = await store.revocations(cursor === "" ? undefined : cursor);
      asOf = batch.now;
      forgetExpired();
      append(batch.revocations);
      revokedUntil = Math.max(revokedUntil, batch.revokedUntil);
      cursor = batch.cursor;
      answering = true;
      beat();
    } catch (error) {
      if (answering) onError(error);
      answering = false;
    }
    tried.resolve();
  }

  let missed = false;
  let readNow = () => {};
  const stopHints = store.onRevocation((hint) => {
    if (hint.length > 0) {
      append(hint);
      beat();
    } else {
      missed = true;
      readNow();
    }
  });
  async function follow(): Promise<void> {
    while (!closed) {
      missed = false;
      await read();
      if (missed || closed) continue;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, BEAT);
        readNow = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }
  const following = follow();

  /** A cursor is a place in the memory of one instance. To another one it says nothing: told twice beats never told. */
  function parseCursor(text: string): number {
    if (text === "") return base;
    const [, givenBy, at] = /^([\w-]+)\.(\d{1,15})$/.exec(text) ?? [];
    if (givenBy === undefined) throw new InvalidCursor("not a cursor of the feed");
    return givenBy === instance ? Math.min(Number(at), base + log.length) : base;
  }

  async function* offer(batch: FeedBatch): AsyncGenerator<FeedBatch, void, undefined> {
    const offered = clock();
    yield batch;
    if (clock() - offered > PATIENCE) {
      throw new ServiceError("E429_RATE_LIMITED", "the watcher does not keep up: resume from its last cursor");
    }
  }

  async function* watch(from: string, signal: AbortSignal): AsyncGenerator<FeedBatch, void, undefined> {
    parseCursor(from); // what is no cursor need not wait
    await tried.promise;
    if (!answering) throw new StoreUnavailable("the revocation log cannot be read");
    let position = parseCursor(from);
    while (!signal.aborted && !closed) {
      const beats = beatCount;
      const start = Math.max(0, position - base);
      const revocations = log.slice(start, start + BATCH);
      position = base + start + revocations.length;
      const toldAll = start + revocations.length === log.length;
      const caughtUp = toldAll && answering;
      yield* offer({ revocations, cursor: `${instance}.${position}`, revokedUntil, caughtUp, asOf });
      // A beat may have come while the watcher was taking the batch.
      if (toldAll && beats === beatCount) await nextBeat(signal);
    }
    if (closed || !signal.aborted)
      throw new ServiceError("E503_UNAVAILABLE", "the service is stopping: resume elsewhere");
  }

  return {
    watch,
    beat,
    close() {
      closed = true;
      stopHints();
      readNow();
      beat();
      return following;
    },
  };
}
