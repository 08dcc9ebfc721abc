/**
 * Delivers signals by poll (RFC 8936). As for deliveries by push, the source is the log of the store with the cursors of the stream: a
 * signal that a receiver has not acknowledged is returned again, with the same id, by any instance.
 *
 * The cursor of a partition moves up to the first signal that is not acknowledged. Acknowledgements of later signals are remembered only
 * by this instance; another instance may return those signals again.
 */
import { passes, type SignalFilter } from "../model.ts";
import type { Cursor, DeliveryCounts, LoggedSignal, SignalLog } from "../ports.ts";

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

/** Moves the cursors over signals that have a verdict, and returns at most `limit` signals that have none. */
export async function passOver(
  deps: PassDeps,
  { id, filter }: { readonly id: string; readonly filter: SignalFilter },
  verdicts: Verdicts,
  limit: number,
): Promise<Pass> {
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
    const window = await readWindow(deps, { id, filter, partition, position, verdicts });
    const left = window.waiting.slice(0, limit - found.length);
    found.push(...left);
    more ||= window.more || left.length < window.waiting.length;
    for (const [signal, verdict] of window.open) open.set(signal, verdict);
    unsettled -= window.settled + window.open.size;
  }
  // If partitions were not examined, the receiver's verdicts on their signals (accepted or refused) are kept for the next poll.
  if (unsettled > 0 && more) for (const [signal, verdict] of verdicts) open.set(signal, verdict);
  return { found, more, open };
}

type Place = {
  readonly id: string;
  readonly filter: SignalFilter;
  readonly partition: number;
  readonly position: Cursor;
  readonly verdicts: Verdicts;
};

type Window = { waiting: LoggedSignal[]; more: boolean; open: Map<string, "accepted" | "refused">; settled: number };

/** Reads one partition until there is a signal to return, and moves the cursor over the signals before it, which have a verdict. */
async function readWindow(deps: PassDeps, { id, filter, partition, position, verdicts }: Place): Promise<Window> {
  const window: Window = { waiting: [], more: false, open: new Map(), settled: 0 };
  let after = position;
  for (let windows = 0; windows < MAX_WINDOWS; windows++) {
    const read = await deps.log.read(partition, after, WINDOW);
    if (!read.ok) {
      // The store has lost the position: the next poll reads the cursor again.
      if (read.reason === "rewound") return window;
      const counts = { delivered: 0, deadLetters: read.lost };
      if (!(await deps.log.pass(partition, id, after, read.oldest, counts))) return window;
      deps.onLoss(read.lost);
      after = read.oldest;
      continue;
    }
    const isWaiting = ({ signal }: LoggedSignal) => passes(signal, filter) && !verdicts.has(signal.id);
    const first = read.signals.findIndex(isWaiting);
    const settled = first === -1 ? read.signals : read.signals.slice(0, first);
    const last = settled.at(-1);
    if (last !== undefined) {
      const judged = settled.filter(({ signal }) => verdicts.has(signal.id) && passes(signal, filter));
      const refused = judged.filter(({ signal }) => verdicts.get(signal.id) === "refused");
      const counts: DeliveryCounts = { delivered: judged.length - refused.length, deadLetters: refused.length };
      // If `pass` returns false, another poll has moved the cursor, and counted these signals.
      if (!(await deps.log.pass(partition, id, after, last.cursor, counts))) return { ...window, more: true };
      for (const one of judged) deps.onSettled(one, verdicts.get(one.signal.id) ?? "accepted");
      window.settled += judged.length;
      after = last.cursor;
    }
    if (first === -1 && read.more) continue;
    for (const { signal } of read.signals.slice(settled.length)) {
      const verdict = verdicts.get(signal.id);
      if (verdict !== undefined) window.open.set(signal.id, verdict);
    }
    window.waiting = read.signals.slice(settled.length).filter(isWaiting);
    window.more = read.more;
    return window;
  }
  return { ...window, more: true };
}
