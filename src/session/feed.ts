/**
 * The revocation feed: one follower of the store's log in each process, however many watch.
 *
 * Batches come in a steady beat, with or without revocations, and only while the store answers: a
 * watcher that hears nothing knows that it knows nothing. What is told is told at least once.
 */
import { ServiceError } from "./errors.ts";
import { type Clock, type SessionStore, StoreUnavailable } from "./ports.ts";
import type { Revocation, SessionId } from "./words.ts";

/** The beat, ms: how long a lost hint can delay a revocation. Half of the promised heartbeat. */
const BEAT = 500;
/** Revocations in one batch: some 60 KiB. */
const BATCH = 1000;
/** How long a watcher may take to accept a batch, ms. It can come back to where it was. */
const PATIENCE = 10_000;

export type FeedBatch = {
  readonly revocations: readonly Revocation[];
  readonly cursor: string;
  /** Whether all that was revoked when the watch began has been told. */
  readonly caughtUp: boolean;
};

export type RevocationFeed = {
  /**
   * @param cursor of the last batch seen; empty for all that is revoked now
   * @throws InvalidCursor, StoreUnavailable; a ServiceError when the watcher does not keep up
   */
  watch(cursor: string, signal: AbortSignal): AsyncGenerator<FeedBatch, void, undefined>;
  /** Tells the watchers at once (of something that is not in the log, such as a revoked key). */
  beat(): void;
  /** Ends every watch, and the following. */
  close(): Promise<void>;
};

type Needs = {
  readonly store: Pick<SessionStore, "revocations" | "onRevocation">;
  readonly clock: Clock;
  /** A name that no other process has, nor this one after a restart. */
  readonly instance: string;
  readonly onError: (error: unknown) => void;
};

/** Starts to follow the log. */
export function followRevocations({ store, clock, instance, onError }: Needs): RevocationFeed {
  const log: Revocation[] = [];
  const known = new Set<SessionId>();
  /** Position of `log[0]` in all that was ever told. */
  let base = 0;
  let cursor = "";
  let answering = false;
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
    const now = clock();
    let expired = 0;
    for (const entry of log) {
      if (entry.expiresAt > now) break;
      known.delete(entry.sid);
      expired++;
    }
    if (expired > 0) log.splice(0, expired);
    base += expired;
  }

  function append(revocations: readonly Revocation[]): void {
    const now = clock();
    for (const entry of revocations) {
      if (known.has(entry.sid) || entry.expiresAt <= now) continue;
      known.add(entry.sid);
      log.push(entry);
    }
  }

  /** Reads what is new and beats. An outage makes the feed fall silent, and is told once. */
  async function read(): Promise<void> {
    try {
      const batch = await store.revocations(cursor === "" ? undefined : cursor);
      forgetExpired();
      append(batch.revocations);
      cursor = batch.cursor;
      answering = true;
      beat();
    } catch (error) {
      if (answering) onError(error);
      answering = false;
    }
  }

  let missed = false;
  let readNow = () => {};
  const stopHints = store.onRevocation((hint) => {
    if (hint.length > 0) {
      append(hint);
      // In an outage others may go untold: whoever hears us must not believe that he knows all.
      if (answering) beat();
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

  /** A cursor: to any instance a place in the store's log, to this one a position in memory, which costs no reading. */
  const place = (stored: string, position: number) => `${stored}~${instance}.${position}`;

  async function* offer(batch: FeedBatch): AsyncGenerator<FeedBatch, void, undefined> {
    const offered = clock();
    yield batch;
    if (clock() - offered > PATIENCE) {
      throw new ServiceError("E429_RATE_LIMITED", "the watcher does not keep up: resume from its last cursor");
    }
  }

  async function* watch(from: string, signal: AbortSignal): AsyncGenerator<FeedBatch, void, undefined> {
    if (!answering) throw new StoreUnavailable("the revocation log cannot be read");
    forgetExpired();
    const [, givenBy, at] = /~(.+)\.(\d{1,15})$/.exec(from) ?? [];
    let stored = from.replace(/~.*/, "");
    let position = givenBy === instance ? Math.min(Number(at), base + log.length) : base;
    if (givenBy !== instance && stored !== "") {
      position = base + log.length;
      const { revocations, cursor: next } = await store.revocations(stored);
      for (let at = 0; at < revocations.length; at += BATCH) {
        yield* offer({ revocations: revocations.slice(at, at + BATCH), cursor: from, caughtUp: false });
      }
      stored = next;
    }
    while (!signal.aborted && !closed) {
      const beats = beatCount;
      const start = Math.max(0, position - base);
      const revocations = log.slice(start, start + BATCH);
      position = base + start + revocations.length;
      const caughtUp = start + revocations.length >= log.length;
      // Elsewhere, a batch that is not the last one is resumed from before all of them: told twice beats never told.
      if (caughtUp) stored = cursor;
      yield* offer({ revocations, cursor: place(stored, position), caughtUp });
      // A beat may have come while the watcher was taking the batch.
      if (caughtUp && beats === beatCount) await nextBeat(signal);
    }
    if (closed || !signal.aborted)
      throw new ServiceError("E503_UNAVAILABLE", "the service is stopping: resume elsewhere");
  }

  return {
    watch,
    beat() {
      // In an outage silence is the message.
      if (answering) beat();
    },
    close() {
      closed = true;
      stopHints();
      readNow();
      beat();
      return following;
    },
  };
}
