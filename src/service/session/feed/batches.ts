import { isStaleMark, type LogEntry, type Revocation, type SessionId, type StaleMark } from "../model.ts";
import type { StoreMs } from "../time.ts";

/**
 * The entries of the revocation log that have not expired, in memory. The position of an entry is the number of entries appended before it.
 * A mark of a session replaces the one before it, whose place stays empty.
 */
export class FeedLog {
  readonly #entries: (LogEntry | undefined)[] = [];
  /** The time until which each session is revoked. If a session was revoked twice, its second revocation may expire later. */
  readonly #latestExpiry = new Map<SessionId, StoreMs>();
  /** The last mark of each session, and its position. */
  readonly #marks = new Map<SessionId, { readonly mark: StaleMark; readonly position: number }>();
  #start = 0;

  /** The position of the oldest entry. */
  get start(): number {
    return this.#start;
  }

  /** The position after the newest entry. */
  get end(): number {
    return this.#start + this.#entries.length;
  }

  /** Returns the entries at `limit` positions from one on, and the position after them. Entries that have been forgotten are left out. */
  read(position: number, limit: number): { readonly entries: LogEntry[]; readonly end: number } {
    const from = Math.max(0, position - this.#start);
    const found = this.#entries.slice(from, from + limit);
    return { entries: found.filter((entry) => entry !== undefined), end: this.#start + from + found.length };
  }

  /** Appends the entries that the log does not contain yet. */
  append(entries: readonly LogEntry[], now: StoreMs): void {
    for (const entry of entries) {
      if (entry.expiresAt <= now) continue;
      if (isStaleMark(entry) ? this.#takeMark(entry) : this.#takeRevocation(entry)) this.#entries.push(entry);
    }
  }

  #takeRevocation({ sid, expiresAt }: Revocation): boolean {
    if (expiresAt <= (this.#latestExpiry.get(sid) ?? 0)) return false;
    this.#latestExpiry.set(sid, expiresAt);
    return true;
  }

  #takeMark(mark: StaleMark): boolean {
    const { sid, expiresAt, minVersion } = mark;
    const known = this.#marks.get(sid);
    // After a failover that has lost an update, a later update may have the same version.
    if (known !== undefined && minVersion <= known.mark.minVersion && expiresAt <= known.mark.expiresAt) return false;
    if (known !== undefined) this.#entries[known.position - this.#start] = undefined;
    this.#marks.set(sid, { mark, position: this.end });
    return true;
  }

  forgetExpired(now: StoreMs): void {
    let expired = 0;
    for (const entry of this.#entries) {
      if (entry !== undefined && entry.expiresAt > now) break;
      expired++;
      if (entry === undefined) continue;
      const { sid, expiresAt } = entry;
      if (isStaleMark(entry)) this.#marks.delete(sid);
      else if (this.#latestExpiry.get(sid) === expiresAt) this.#latestExpiry.delete(sid);
    }
    this.#entries.splice(0, expired);
    this.#start += expired;
  }
}

/** The maximum number of entries in one batch, which then has some 60 KiB. */
const MAX_BATCH = 1000;
/** For how many positions in the log the next batch is kept, so that all watchers at the same position share it. */
const MAX_SHARED = 16;

export type FeedBatch = {
  readonly revocations: readonly Revocation[];
  readonly staleMarks: readonly StaleMark[];
  readonly cursor: string;
  /** All sessions that were created at this time or before have ended; 0 if there was no logout of everyone. */
  readonly revokedUntil: StoreMs;
  /** Whether everything that was revoked at `asOf` has been delivered, and `asOf` is recent. False while the store does not respond. */
  readonly caughtUp: boolean;
  /** When the log was last read. */
  readonly asOf: StoreMs;
};

/** The fields of a batch that do not depend on the position of a watcher. */
type FeedFacts = Pick<FeedBatch, "revokedUntil" | "asOf"> & { readonly isCurrent: boolean };

export type NextBatch = {
  readonly batch: FeedBatch;
  /** The position of the watcher once it has the batch. */
  readonly position: number;
  /** Whether the batch reaches the end of the log. */
  readonly isComplete: boolean;
};

/** Makes the batches of watchers. Watchers at the same position get the same object, so that its bytes can be made once for all. */
export class FeedBatches {
  readonly #log: FeedLog;
  readonly #instance: string;
  readonly #shared = new Map<number, NextBatch>();
  #madeOf: (FeedFacts & { readonly start: number; readonly end: number }) | undefined;

  constructor(log: FeedLog, instance: string) {
    this.#log = log;
    this.#instance = instance;
  }

  after(position: number, facts: FeedFacts): NextBatch {
    this.#dropOld(facts);
    let next = this.#shared.get(position);
    if (next === undefined) {
      next = this.#make(position, facts);
      if (this.#shared.size === MAX_SHARED) this.#shared.clear();
      this.#shared.set(position, next);
    }
    return next;
  }

  #make(position: number, { revokedUntil, asOf, isCurrent }: FeedFacts): NextBatch {
    const { entries, end } = this.#log.read(position, MAX_BATCH);
    const staleMarks = entries.filter(isStaleMark);
    const revocations = entries.filter((entry): entry is Revocation => !isStaleMark(entry));
    const isComplete = end === this.#log.end;
    const cursor = `${this.#instance}.${end}`;
    return {
      batch: { revocations, staleMarks, cursor, revokedUntil, caughtUp: isComplete && isCurrent, asOf },
      position: end,
      isComplete,
    };
  }

  #dropOld({ revokedUntil, asOf, isCurrent }: FeedFacts): void {
    const { start, end } = this.#log;
    const old = this.#madeOf;
    const isSame =
      old?.start === start &&
      old.end === end &&
      old.revokedUntil === revokedUntil &&
      old.asOf === asOf &&
      old.isCurrent === isCurrent;
    if (isSame) return;
    this.#shared.clear();
    this.#madeOf = { start, end, revokedUntil, asOf, isCurrent };
  }
}
