/** One partition of the log, as far as a subscription has read it and the receiver has not accepted it. */
import type { Signal } from "../model.ts";
import type { Cursor, DeliveryCounts, LoggedSignal } from "../ports.ts";

/** Entries of the log that need nothing any more: accepted, given up or left out by the filter. */
type Settled = { to: Cursor; entries: number; delivered: number; deadLetters: number };

/** A signal that is to be delivered. */
export type Item = LoggedSignal & {
  readonly line: Line;
  state: "waiting" | "sending";
  attempts: number;
  /** Refusals before which the receiver had accepted another signal since the attempt before. */
  refusals: number;
  firstFailedAt: number | undefined;
  lastFailedAt: number | undefined;
  retryAt: number;
  /** What comes after it in the log, up to the next item. The cursor cannot move there before this item is settled. */
  readonly after: Settled;
};

export type Line = {
  readonly partition: number;
  /** What comes before the first item: the cursor may move to its end. */
  readonly settled: Settled;
  /** What is to be delivered, in the order of the log. */
  readonly items: Item[];
  /** How many items were tried in vain. They take no room in the line. */
  tried: number;
  /** How many settled entries come after the first item. A crash repeats them. */
  ahead: number;
  /** Up to where the log was read. */
  position: Cursor;
  /** Whether there is more to read as soon as there is room. */
  more: boolean;
  /** False when another instance may read the partition. Results of its requests are then not stored. */
  open: boolean;
  /** Whether its cursor is being stored. */
  storing: boolean;
};

/** How far a cursor may move, and what is counted on the way. */
export type Progress = { readonly to: Cursor; readonly entries: number; readonly counts: DeliveryCounts };

export function openLine(partition: number, cursor: Cursor): Line {
  const line = { partition, settled: nothingUpTo(cursor), items: [], tried: 0, ahead: 0, position: cursor };
  return { ...line, more: true, open: true, storing: false };
}

export const nothingUpTo = (to: Cursor): Settled => ({ to, entries: 0, delivered: 0, deadLetters: 0 });

/** Adds settled entries that come after `item`, or before all items if it is undefined. */
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
