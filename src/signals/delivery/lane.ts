/**
 * What one subscription has to deliver, and when. It is pure: times and randomness are given, and the caller sends, reads and stores.
 *
 * A lane has one line for each partition of the log. Signals of one session are in one line, and are sent one after the other. A
 * line's cursor moves over what the receiver has accepted without a gap, so what was not accepted is read again after a crash.
 */
import { type DeliveryError, passes, type Signal, type SignalFilter } from "../model.ts";
import type { Cursor, DeliveryCounts, LoggedSignal } from "../ports.ts";

/** Requests to one receiver at the same time, and while it fails. */
const MAX_IN_FLIGHT = 8;
const MAX_IN_FLIGHT_FAILING = 1;
/** Failed attempts in a row from which a receiver counts as failing. */
const FAILING_FROM = 5;
/** Signals that are held in memory. */
const MAX_LINE = 16;
const MAX_LANE = 512;
/** A receiver that has failed for so long is paused; so long is one signal tried. */
export const GIVE_UP_MS = 86_400_000;
/** A signal that the receiver has refused so often, and accepted others in between, is given up. */
const MAX_REFUSALS = 10;
const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 3_600_000;

/** @param fraction random, from 0 to 1: full jitter */
export function backoffMs(failures: number, fraction: number): number {
  return fraction * Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(failures - 1, 30));
}

export type Item = LoggedSignal & {
  readonly line: Line;
  state: "waiting" | "sending" | "accepted" | "given_up" | "skipped";
  attempts: number;
  /** Refusals before which the receiver had accepted another signal since the attempt before. */
  refusals: number;
  firstFailedAt: number | undefined;
  lastFailedAt: number | undefined;
  retryAt: number;
};

export type Line = {
  readonly partition: number;
  /** What was read after the stored cursor, in the order of the log. */
  items: Item[];
  /** Up to where the log was read. */
  position: Cursor;
  /** Whether there is more to read as soon as there is room. */
  more: boolean;
  /** False when another instance may read the partition. Results of its requests are then not stored. */
  open: boolean;
  /** Whether its cursor is being stored. */
  storing: boolean;
};

export class Lane {
  readonly #lines = new Map<number, Line>();
  /** In the order of reading. */
  readonly #waiting = new Set<Item>();
  #held = 0;
  #inFlight = 0;
  #failures = 0;
  #failingSince: number | undefined;
  #retryAt = 0;
  #lastAcceptedAt: number | undefined;

  /** Failed attempts in a row. */
  get failures(): number {
    return this.#failures;
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get lines(): IterableIterator<Line> {
    return this.#lines.values();
  }

  line(partition: number): Line | undefined {
    return this.#lines.get(partition);
  }

  open(partition: number, cursor: Cursor): void {
    this.close(partition);
    this.#lines.set(partition, { partition, items: [], position: cursor, more: true, open: true, storing: false });
  }

  close(partition: number): void {
    const line = this.#lines.get(partition);
    if (line === undefined) return;
    line.open = false;
    this.#held -= line.items.length;
    for (const item of line.items) this.#waiting.delete(item);
    this.#lines.delete(partition);
  }

  closeAll(): void {
    for (const partition of [...this.#lines.keys()]) this.close(partition);
  }

  /** Returns how many signals may be read into a line. */
  room(line: Line): number {
    return Math.max(0, Math.min(MAX_LINE - line.items.length, MAX_LANE - this.#held));
  }

  /** Takes signals that were read after the line's position, as many as there is room for. */
  add(line: Line, signals: readonly LoggedSignal[], more: boolean, filter: SignalFilter): void {
    const taken = signals.slice(0, this.room(line));
    for (const { signal, cursor } of taken) {
      const state = passes(signal, filter) ? "waiting" : "skipped";
      const failed = { firstFailedAt: undefined, lastFailedAt: undefined };
      const item: Item = { signal, cursor, line, state, attempts: 0, refusals: 0, ...failed, retryAt: 0 };
      line.items.push(item);
      line.position = cursor;
      if (state === "waiting") this.#waiting.add(item);
    }
    this.#held += taken.length;
    line.more = more || taken.length < signals.length;
  }

  /** Returns at most `limit` signals to be sent now. Each must be settled. */
  take(now: number, limit: number): Item[] {
    const failing = this.#failures >= FAILING_FROM;
    if (failing && now < this.#retryAt) return [];
    const free = (failing ? MAX_IN_FLIGHT_FAILING : MAX_IN_FLIGHT) - this.#inFlight;
    const taken: Item[] = [];
    for (const item of this.#waiting) {
      if (taken.length >= Math.min(free, limit)) break;
      if (item.retryAt > now || hasEarlier(item)) continue;
      item.state = "sending";
      taken.push(item);
    }
    for (const item of taken) this.#waiting.delete(item);
    this.#inFlight += taken.length;
    return taken;
  }

  /**
   * Records the result of an attempt.
   *
   * @param fraction random, from 0 to 1
   * @returns `pause` if the receiver has failed for too long
   */
  settle(item: Item, error: DeliveryError | undefined, now: number, fraction: number): "pause" | undefined {
    this.#inFlight--;
    if (error === undefined) {
      item.state = "accepted";
      this.#failures = 0;
      this.#failingSince = undefined;
      this.#lastAcceptedAt = now;
      return undefined;
    }
    this.#failures++;
    this.#failingSince ??= now;
    if (this.#failures >= FAILING_FROM) this.#retryAt = now + backoffMs(this.#failures - FAILING_FROM + 1, fraction);
    this.#fail(item, error, now, fraction);
    return now - this.#failingSince >= GIVE_UP_MS ? "pause" : undefined;
  }

  #fail(item: Item, error: DeliveryError, now: number, fraction: number): void {
    const acceptedAt = this.#lastAcceptedAt ?? -1;
    if (error === "refused" && acceptedAt >= (item.lastFailedAt ?? now)) item.refusals++;
    item.attempts++;
    item.firstFailedAt ??= now;
    item.lastFailedAt = now;
    const expired = now - item.firstFailedAt >= GIVE_UP_MS && acceptedAt >= item.firstFailedAt;
    item.state = expired || item.refusals >= MAX_REFUSALS ? "given_up" : "waiting";
    item.retryAt = now + backoffMs(item.attempts, fraction);
    if (item.state === "waiting" && item.line.open) this.#waiting.add(item);
  }

  /** Returns up to where the cursor may move, and what is counted on the way. */
  progress(line: Line): { readonly to: Cursor; readonly counts: DeliveryCounts } | undefined {
    const pending = line.items.findIndex(isPending);
    const done = pending === -1 ? line.items : line.items.slice(0, pending);
    const last = done.at(-1);
    if (last === undefined) return undefined;
    const count = (state: Item["state"]) => done.filter((item) => item.state === state).length;
    return { to: last.cursor, counts: { delivered: count("accepted"), deadLetters: count("given_up") } };
  }

  /** Forgets what is behind the stored cursor. */
  stored(line: Line, to: Cursor): void {
    const behind = line.items.findIndex(({ cursor }) => cursor === to) + 1;
    line.items.splice(0, behind);
    if (line.open) this.#held -= behind;
  }
}

function isPending({ state }: Item): boolean {
  return state === "waiting" || state === "sending";
}

/** Returns whether an earlier signal of the session has not been delivered yet. */
function hasEarlier(item: Item): boolean {
  const { sessionId }: Signal = item.signal;
  const first = item.line.items.find((other) => isPending(other) && other.signal.sessionId === sessionId);
  return first !== item;
}
