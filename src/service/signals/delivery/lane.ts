/**
 * Decides which signals of one subscription are sent when. It does no I/O: its caller sends, reads and stores, and passes times and
 * randomness.
 *
 * A lane has one line for each partition of the log. Signals of one session are in one line, and are sent one after the other. The cursor
 * of a line stays before the first signal that the receiver has not accepted, so that this signal is read again after a crash. A signal
 * that the receiver refuses delays only those of its own session. Signals of other sessions are sent before the refused signal, and are
 * sent again after a crash.
 */
import { type DeliveryError, passes, type SignalFilter } from "../model.ts";
import type { Cursor, LoggedSignal } from "../ports.ts";
import {
  hasEarlier,
  type Item,
  type Line,
  type LineProgress,
  merge,
  nothingUpTo,
  openLine,
  settleInto,
} from "./line.ts";

/** How many requests to one receiver run at the same time, normally and while it fails. */
const MAX_IN_FLIGHT = 8;
const MAX_IN_FLIGHT_FAILING = 1;
/** After this many failed attempts in a row, a receiver counts as failing. Attempts that the receiver refused do not count. */
const FAILING_FROM = 5;
/** How many signals of one partition of the log are kept in memory for a subscription, besides those that have failed. */
export const MAX_LINE = 16;
/** How many signals of all partitions are kept in memory for a subscription. */
const MAX_LANE = 512;
/** While the receiver refuses a signal, at most this many signals that come after it in the log are delivered. */
const MAX_AHEAD = 10_000;
/** A receiver that has failed for this time, in ms, is paused. A signal that has failed for this time is given up. */
export const GIVE_UP_MS = 86_400_000;
/** A signal is given up after the receiver has refused it this many times while it accepted other signals in between. */
const MAX_REFUSALS = 10;
const FIRST_BACKOFF_MS = 1_000;
const MAX_BACKOFF_MS = 3_600_000;

/** Returns the delay of a retry, in ms: `fraction`, a random number from 0 to 1, of the longest delay (full jitter). */
export function backoffMs(failures: number, fraction: number): number {
  return fraction * Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** Math.min(failures - 1, 30));
}

export class Lane {
  readonly #lines = new Map<number, Line>();
  /** The signals that wait, in the order in which they were read. */
  readonly #waiting = new Set<Item>();
  #held = 0;
  #inFlight = 0;
  #failures = 0;
  /** How many attempts in a row have failed other than by a refusal, for example because the receiver was not reachable. */
  #silent = 0;
  #failingSince: number | undefined;
  #retryAt = 0;
  #lastAcceptedAt: number | undefined;
  #givenUp = 0;

  get failures(): number {
    return this.#failures;
  }

  /** How many signals were given up. */
  get givenUp(): number {
    return this.#givenUp;
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
    this.#lines.set(partition, openLine(partition, cursor));
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

  /** Returns how many more signals of a partition may be read, besides those that the filter excludes. */
  room(line: Line): number {
    if (line.ahead >= MAX_AHEAD) return 0;
    return Math.max(0, Math.min(MAX_LINE + line.tried - line.items.length, MAX_LANE - this.#held));
  }

  /** Adds signals of a partition that were read after the last ones, as many as there is room for. */
  add(line: Line, signals: readonly LoggedSignal[], more: boolean, filter: SignalFilter): void {
    for (const { signal, cursor } of signals) {
      if (this.room(line) === 0) {
        line.more = true;
        return;
      }
      line.position = cursor;
      if (passes(signal, filter)) this.#append(line, { signal, cursor });
      else settleInto(line, line.items.at(-1), { to: cursor, entries: 1, delivered: 0, deadLetters: 0 });
    }
    line.more = more;
  }

  /** Passes over signals that the log no longer has. Those in memory were read before, and are still sent. @param to the end of the gap */
  skip(line: Line, to: Cursor, lost: number): void {
    line.position = to;
    line.more = true;
    // The gap counts as one entry towards MAX_AHEAD: nothing of it is sent again after a crash.
    settleInto(line, line.items.at(-1), { to, entries: 1, delivered: 0, deadLetters: lost });
  }

  #append(line: Line, logged: LoggedSignal): void {
    const failed = { attempts: 0, refusals: 0, firstFailedAt: undefined, lastFailedAt: undefined, retryAt: 0 };
    const item: Item = { ...logged, line, state: "waiting", ...failed, after: nothingUpTo(logged.cursor) };
    line.items.push(item);
    this.#waiting.add(item);
    this.#held++;
  }

  /** Returns at most `limit` signals to send now. The caller must call `settle` for each of them. */
  take(now: number, limit: number): Item[] {
    const failing = this.#silent >= FAILING_FROM;
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

  /** Records the result of an attempt. Returns `pause` if the receiver has failed for too long. @param fraction random, from 0 to 1 */
  settle(item: Item, error: DeliveryError | undefined, now: number, fraction: number): "pause" | undefined {
    this.#inFlight--;
    if (error === undefined) {
      this.#settled(item, "delivered");
      this.#failures = 0;
      this.#silent = 0;
      this.#failingSince = undefined;
      this.#lastAcceptedAt = now;
      return undefined;
    }
    this.#failures++;
    this.#failingSince ??= now;
    // A receiver that refuses one signal may accept another, so only that signal waits.
    this.#silent = error === "refused" ? 0 : this.#silent + 1;
    // It is used from FAILING_FROM on.
    this.#retryAt = now + backoffMs(this.#silent - FAILING_FROM + 1, fraction);
    this.#fail(item, error, now, fraction);
    return now - this.#failingSince >= GIVE_UP_MS ? "pause" : undefined;
  }

  #fail(item: Item, error: DeliveryError, now: number, fraction: number): void {
    const acceptedAt = this.#lastAcceptedAt ?? Number.NEGATIVE_INFINITY;
    // A refusal counts if the receiver has accepted another signal since the previous attempt. While the memory is full of refused signals,
    // no other signal can be read and accepted. Then it is enough if one was accepted since the first failure.
    const since = this.#held >= MAX_LANE ? item.firstFailedAt : item.lastFailedAt;
    if (error === "refused" && acceptedAt >= (since ?? now)) item.refusals++;
    if (item.attempts++ === 0) item.line.tried++;
    item.firstFailedAt ??= now;
    item.lastFailedAt = now;
    const expired = now - item.firstFailedAt >= GIVE_UP_MS && acceptedAt >= item.firstFailedAt;
    item.state = "waiting";
    item.retryAt = now + backoffMs(item.attempts, fraction);
    if (expired || item.refusals >= MAX_REFUSALS) this.#settled(item, "deadLetters");
    else if (item.line.open) this.#waiting.add(item);
  }

  #settled(item: Item, counted: "delivered" | "deadLetters"): void {
    const { line } = item;
    if (!line.open) return;
    if (counted === "deadLetters") this.#givenUp++;
    const at = line.items.indexOf(item);
    line.items.splice(at, 1);
    this.#held--;
    if (item.attempts > 0) line.tried--;
    if (at === 0) line.ahead -= item.after.entries;
    const own = { to: item.cursor, entries: 1, delivered: 0, deadLetters: 0 };
    settleInto(line, line.items[at - 1], { ...own, [counted]: 1 });
    // `line.ahead` counts the entries after the first signal that need no delivery any more. The entries after this signal were subtracted
    // above if it was the first one. Otherwise they count as before.
    merge(at === 0 ? line.settled : (line.items[at - 1] as Item).after, item.after);
  }

  /** Returns how far the stored cursor may move, or undefined if it would move by less than `least` entries of the log. */
  progress({ settled }: Line, least = 1): LineProgress | undefined {
    const { to, entries, delivered, deadLetters } = settled;
    return entries < least ? undefined : { to, entries, counts: { delivered, deadLetters } };
  }

  /** Drops the entries up to the cursor that was stored. */
  stored({ settled }: Line, { entries, counts }: LineProgress): void {
    settled.entries -= entries;
    settled.delivered -= counts.delivered;
    settled.deadLetters -= counts.deadLetters;
  }
}

/** Returns whether a subscription may leave signals out. */
export function hasFilter({ filter }: { readonly filter: SignalFilter }): boolean {
  return Object.keys(filter).length > 0;
}
