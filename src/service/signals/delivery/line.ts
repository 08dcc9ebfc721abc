/** A line: the signals of one partition of the log that a subscription has read and its receiver has not accepted yet. */
import type { Signal } from "../model.ts";
import type { Cursor, DeliveryCounts, LoggedSignal } from "../ports.ts";

/** Consecutive log entries that need no delivery any more: each was accepted, given up or excluded by the filter. */
type Settled = { to: Cursor; entries: number; delivered: number; deadLetters: number };

export type Item = LoggedSignal & {
  readonly line: Line;
  state: "waiting" | "sending";
  attempts: number;
  /** How many times the receiver refused this signal although it had accepted another signal since the previous attempt. */
  refusals: number;
  firstFailedAt: number | undefined;
  lastFailedAt: number | undefined;
  retryAt: number;
  /** The entries between this signal and the next undelivered one; none needs delivery. The cursor passes them only after this signal. */
  readonly after: Settled;
};

export type Line = {
  readonly partition: number;
  /** The log entries before the first undelivered signal; none needs delivery any more. The cursor may move to their end. */
  readonly settled: Settled;
  /** The signals to deliver, in the order of the log. */
  readonly items: Item[];
  /** How many signals in `items` have failed at least once. Such signals do not count towards MAX_LINE, the limit for signals in memory. */
  tried: number;
  /** How many log entries after the first signal in `items` need no delivery any more. After a crash they are delivered again. */
  ahead: number;
  /** The cursor up to which the log was read. */
  position: Cursor;
  /** Whether the log has more signals, to be read as soon as this line has room. */
  more: boolean;
  /** False if another instance may be reading the partition. Results of requests are then not stored. */
  open: boolean;
  storing: boolean;
};

/** How far a cursor may move, and the counts of the log entries that it passes. */
export type LineProgress = { readonly to: Cursor; readonly entries: number; readonly counts: DeliveryCounts };

export function openLine(partition: number, cursor: Cursor): Line {
  const line = { partition, settled: nothingUpTo(cursor), items: [], tried: 0, ahead: 0, position: cursor };
  return { ...line, more: true, open: true, storing: false };
}

export const nothingUpTo = (to: Cursor): Settled => ({ to, entries: 0, delivered: 0, deadLetters: 0 });

/** Adds log entries that need no delivery any more. They come after `item`, or before all items if `item` is undefined. */
export function settleInto(line: Line, item: Item | undefined, settled: Settled): void {
  if (item !== undefined) line.ahead += settled.entries;
  merge(item?.after ?? line.settled, settled);
}

export function merge(earlier: Settled, later: Settled): void {
  earlier.to = later.to;
  earlier.entries += later.entries;
  earlier.delivered += later.delivered;
  earlier.deadLetters += later.deadLetters;
}

/** Returns whether an earlier signal of the session has not been delivered yet. */
export function hasEarlier(item: Item): boolean {
  const { sessionId }: Signal = item.signal;
  return item.line.items.find((other) => other.signal.sessionId === sessionId) !== item;
}
