/**
 * Decides under overload which work is admitted. New ordinary work is refused early, with 503 and Retry-After, while accepted work keeps a
 * bounded latency. Two signals decide. Each is judged once per turn of the event loop (platform/clock/turns.ts), and never by a clock
 * alone. So neither a busy machine nor a pause of the whole process counts as overload, although after a pause all replies arrive at once:
 *
 * - The store: how many commands wait for it, and whether it replies in time.
 * - The event loop: whether its turns are late, twice in a row, by work of its own.
 *
 * Some work is always admitted: a few commands are always under way, and a few calls are accepted in every turn. So the first reply shows a
 * recovery.
 */

import { processorTime, TURN_MS } from "../../../platform/clock/turns.ts";

/** Why ordinary work is refused. */
type OverloadCause = "store" | "event_loop";

export type AdmissionOptions = {
  /** How many commands may wait for the store; 0 means any number. */
  readonly maxWaiting: number;
  /** How late turns of the event loop may be, in ms; 0 means any delay. */
  readonly maxLoopDelayMs: number;
  /** The delay, in ms, from which the store counts as late. */
  readonly maxStoreDelayMs: number;
  readonly onRefused: (cause: OverloadCause) => void;
  /** Returns milliseconds that never step back. */
  readonly clock?: () => number;
  /** Returns the processor time of this process, in ms. */
  readonly processorTime?: () => number;
};

/** How many commands may wait for a store that is late. The reply to one of them shows that the store has recovered. */
export const PROBES = 16;
/** How many calls per turn a late event loop still accepts. */
export const LATE_CALLS_PER_TURN = 64;
/** How many turns in a row must be late. A single late one may be a pause, such as a garbage collection. */
const LATE_TURNS = 2;
/** Commands that end sessions are accepted for as long as possible: the queue may be this many times as long for them. */
const ENDINGS_FACTOR = 4;

/** A turn of the event loop, and how many of the commands that were sent in it wait for the store. */
type Turn = { readonly number: number; waiting: number };

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #clock: () => number;
  readonly #processorTime: () => number;
  readonly #maxStoreTurns: number;
  #turn: Turn = { number: 0, waiting: 0 };
  #lastTurnAt: number;
  #workedUntil: number;
  #lateTurns = 0;
  #acceptedThisTurn = 0;
  /** The turns from the oldest in which a command that still waits began to the current one. */
  readonly #turns = [this.#turn];
  /** How many commands wait for the store. */
  #waiting = 0;
  #lastReplyTurn = 0;
  /** How many turns of the event loop the command that was replied to last had waited. */
  #lastWaitTurns = 0;
  /** Whether the outcome of a command is unknown and no reply of the store has arrived since. */
  #silent = false;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
    this.#processorTime = options.processorTime ?? processorTime;
    this.#maxStoreTurns = Math.max(1, Math.ceil(options.maxStoreDelayMs / TURN_MS));
    this.#lastTurnAt = this.#clock();
    this.#workedUntil = this.#processorTime();
  }

  /** Checks whether the event loop is late. It must be called once per turn of the event loop. */
  turn(): void {
    const { maxLoopDelayMs } = this.#options;
    const now = this.#clock();
    const worked = this.#processorTime();
    // A turn is also late if the process had no processor, which is no overload. So only the processor time of the turn counts as lateness.
    const late = Math.min(now - this.#lastTurnAt - TURN_MS, worked - this.#workedUntil) > maxLoopDelayMs;
    this.#lateTurns = late && maxLoopDelayMs > 0 ? this.#lateTurns + 1 : 0;
    this.#lastTurnAt = now;
    this.#workedUntil = worked;
    this.#turn = { number: this.#turn.number + 1, waiting: 0 };
    this.#acceptedThisTurn = 0;
    while (this.#turns[0]?.waiting === 0) this.#turns.shift();
    this.#turns.push(this.#turn);
  }

  /** Returns whether an ordinary call is accepted. */
  accept(): boolean {
    const isLate = this.#lateTurns >= LATE_TURNS && this.#acceptedThisTurn >= LATE_CALLS_PER_TURN;
    if (isLate || this.storeIsBusy()) {
      this.#options.onRefused(isLate ? "event_loop" : "store");
      return false;
    }
    this.#acceptedThisTurn++;
    return true;
  }

  /** Returns whether no ordinary command may join those that wait for the store. */
  storeIsBusy(): boolean {
    const { maxWaiting } = this.#options;
    if (maxWaiting === 0) return false;
    return this.#waiting >= maxWaiting || (this.#waiting >= PROBES && this.#storeIsLate());
  }

  /** Returns whether so many commands wait for the store that even those which end sessions are refused. */
  storeIsFull(): boolean {
    const { maxWaiting } = this.#options;
    return maxWaiting > 0 && this.#waiting >= ENDINGS_FACTOR * Math.max(maxWaiting, PROBES);
  }

  /** Notes that a command is sent to the store. @returns the value to pass to `finish` */
  begin(): Turn {
    this.#waiting++;
    this.#turn.waiting++;
    return this.#turn;
  }

  /**
   * Notes that a command has ended.
   *
   * @param outcome `slow`: the reply arrived, but its duration does not show how fast the store is (commands that end sessions wait for
   *   replicas); `lost`: the outcome of the command is unknown
   */
  finish(begun: Turn, outcome: "replied" | "slow" | "lost"): void {
    this.#waiting--;
    begun.waiting--;
    this.#silent = outcome === "lost";
    if (outcome === "lost") return;
    this.#lastReplyTurn = this.#turn.number;
    if (outcome === "replied") this.#lastWaitTurns = this.#turn.number - begun.number;
  }

  /** The current turn of the event loop. Callers pass it to `hear` as the time at which a command began. */
  get now(): Pick<Turn, "number"> {
    return this.#turn;
  }

  /** Records a reply to a command that is not counted as waiting. After an outage such a reply is the first sign of a recovery. */
  hear(begun: Pick<Turn, "number">): void {
    this.#silent = false;
    this.#lastReplyTurn = this.#turn.number;
    // A short wait of this command shows that the store is fast. A long one shows nothing: a read of the whole revocation log, for example,
    // takes long although the store is not late. So the recorded wait may become shorter here, but not longer.
    this.#lastWaitTurns = Math.min(this.#lastWaitTurns, this.#turn.number - begun.number);
  }

  get waiting(): number {
    return this.#waiting;
  }

  /**
   * A store is late if a command was lost, if no reply has come for a while, or if the last reply took long. One of several nodes
   * that is down does not count: the replies of the others keep coming in time.
   */
  #storeIsLate(): boolean {
    if (this.#silent || this.#lastWaitTurns >= this.#maxStoreTurns) return true;
    const oldest = this.#turns[0] ?? this.#turn;
    return this.#turn.number - Math.max(oldest.number, this.#lastReplyTurn) >= this.#maxStoreTurns;
  }
}
