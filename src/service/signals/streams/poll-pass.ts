/**
 * Delivers signals by poll (RFC 8936). As for deliveries by push, the source is the log of the store with the cursors of the stream: a
 * signal that a receiver has not acknowledged is returned again, with the same id, by any instance.
 *
 * The cursor of a partition moves up to the first signal that is not acknowledged. Acknowledgements of later signals are remembered only
 * by this instance; another instance may return those signals again.
 */
import { passes, type SignalFilter } from "../model.ts";
import type { Cursor, LoggedSignal, SignalLog } from "../ports.ts";

/** How many signals of one partition are read at once. These signals are called a window. */
const WINDOW = 64;
/** How many windows of a partition are read one after the other while none has a signal to return. */
const MAX_WINDOWS = 16;

/** The receiver's verdicts on events, by id: accepted, or refused. */
export type Verdicts = ReadonlyMap<string, "accepted" | "refused">;

export type PassDeps = {
  readonly log: SignalLog;
  /** The partition to begin with. It changes with each pass, so that an unacknowledged signal does not block other partitions. */
  readonly start: number;
  readonly onSettled: (logged: LoggedSignal, verdict: "accepted" | "refused") => void;
  /** Called when the log began after the stream's position, so that signals were lost. */
  readonly onLoss: (signals: number) => void;
};

type Pass = {
  /** The signals to return. Those of one session are in order. */
  readonly found: readonly LoggedSignal[];
  readonly more: boolean;
  /** The receiver's verdicts on signals that a cursor has not passed yet. */
  readonly open: Verdicts;
};

type Judged = { readonly id: string; readonly filter: SignalFilter; readonly verdicts: Verdicts };

/** Moves the cursors over signals that have a verdict, and returns at most `limit` signals that have none. */
export async function passOver(
  deps: PassDeps,
  { id, filter }: { readonly id: string; readonly filter: SignalFilter },
  verdicts: Verdicts,
  limit: number,
): Promise<Pass> {
  const stream = { id, filter, verdicts };
  const found: LoggedSignal[] = [];
  const open = new Map<string, "accepted" | "refused">();
  let unsettled = verdicts.size;
  let more = false;
  const [positions, ends] = [await deps.log.positions(id), await deps.log.ends()];
  for (let at = 0; at < positions.length; at++) {
    const partition = (deps.start + at) % positions.length;
    const position = positions[partition];
    if (position === undefined || position === "" || position === ends[partition]) continue;
    if (found.length >= limit && unsettled === 0) {
      more = true;
      break;
    }
    const window = await readWindow(deps, stream, partition, position);
    const waiting = window.rest.filter((logged) => isWaiting(stream, logged));
    const left = waiting.slice(0, limit - found.length);
    found.push(...left);
    more ||= window.more || left.length < waiting.length;
    unsettled -= window.settled;
    for (const { signal } of window.rest) {
      const verdict = verdicts.get(signal.id);
      if (verdict === undefined) continue;
      open.set(signal.id, verdict);
      unsettled--;
    }
  }
  // If partitions were not examined, the receiver's verdicts on their signals (accepted or refused) are kept for the next poll.
  if (unsettled > 0 && more) for (const [signal, verdict] of verdicts) open.set(signal, verdict);
  return { found, more, open };
}

function isWaiting({ filter, verdicts }: Judged, { signal }: LoggedSignal): boolean {
  return passes(signal, filter) && !verdicts.has(signal.id);
}

/** The signals from the first waiting one on, and the number of signals before it that had a verdict. */
type Window = { readonly rest: readonly LoggedSignal[]; readonly settled: number; readonly more: boolean };

/** Reads one partition until there is a signal to return, and moves the cursor over the signals before it. */
async function readWindow(deps: PassDeps, stream: Judged, partition: number, position: Cursor): Promise<Window> {
  const { log, onLoss } = deps;
  let after = position;
  let settled = 0;
  for (let windows = 0; windows < MAX_WINDOWS; windows++) {
    const read = await log.read(partition, after, WINDOW);
    if (!read.ok) {
      // The store has lost the position: the next poll reads the cursor again.
      if (read.reason === "rewound") return { rest: [], settled, more: false };
      const counts = { delivered: 0, deadLetters: read.lost };
      if (!(await log.pass(partition, stream.id, after, read.oldest, counts)))
        return { rest: [], settled, more: false };
      onLoss(read.lost);
      after = read.oldest;
      continue;
    }
    const first = read.signals.findIndex((logged) => isWaiting(stream, logged));
    const before = first === -1 ? read.signals : read.signals.slice(0, first);
    const counted = await settle(deps, stream, partition, after, before);
    if (counted === undefined) break;
    settled += counted;
    if (first !== -1 || !read.more) return { rest: read.signals.slice(before.length), settled, more: read.more };
    after = before.at(-1)?.cursor ?? after;
  }
  return { rest: [], settled, more: true };
}

/** Moves the cursor over signals. Returns how many had a verdict; undefined if another poll has moved the cursor and counted them. */
async function settle(
  { log, onSettled }: PassDeps,
  { id, filter, verdicts }: Judged,
  partition: number,
  from: Cursor,
  signals: readonly LoggedSignal[],
): Promise<number | undefined> {
  const last = signals.at(-1);
  if (last === undefined) return 0;
  const judged = signals.filter(({ signal }) => verdicts.has(signal.id) && passes(signal, filter));
  const deadLetters = judged.filter(({ signal }) => verdicts.get(signal.id) === "refused").length;
  const counts = { delivered: judged.length - deadLetters, deadLetters };
  if (!(await log.pass(partition, id, from, last.cursor, counts))) return undefined;
  for (const one of judged) onSettled(one, verdicts.get(one.signal.id) ?? "accepted");
  return judged.length;
}
