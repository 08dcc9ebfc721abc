/**
 * Decides under overload which work is admitted. New ordinary work is refused early, with 503 and Retry-After, while accepted work keeps a
 * bounded latency. Two signals decide. Each is judged once per turn of the event loop (clock/turns.ts), and never by a clock alone. So
 * neither a busy machine nor a pause of the whole process counts as overload, although after a pause all replies arrive at once:
 *
 * - The store: how many commands wait for it, and whether it replies in time.
 * - The event loop: whether its turns are late, twice in a row, by work of its own.
 *
 * Some work is always admitted: a few commands are always under way, and a few calls are accepted in every turn. So the first reply shows a
 * recovery.
 */

import { processorTime } from "../../../platform/clock/processor-time.ts";
import { TURN_MS } from "../../../platform/clock/turns.ts";

/** Why ordinary work is refused. */
export type OverloadCause = "store" | "event_loop";

export type AdmissionOptions = {
  /** How many commands may wait for the store; 0 means any number. */
  readonly maxWaiting: number;
  /** How late turns of the event loop may be, in ms; 0 means any delay. */
  readonly maxLoopDelayMs: number;
  /** The delay, in ms, from which the store counts as late. */
  readonly maxStoreDelayMs: number;
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

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #clock: () => number;
  readonly #processorTime: () => number;
  readonly #maxStoreTurns: number;
  #turn = 0;
  #lastTurnAt: number;
  #workedUntil: number;
  #lateTurns = 0;
  #acceptedThisTurn = 0;
  /** How many commands wait for the store, for each turn that they began in, from the turn `#oldestTurn` on. */
  readonly #waiting: number[] = [0];
  #oldestTurn = 0;
  #waitingCount = 0;
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
    this.#turn++;
    this.#acceptedThisTurn = 0;
    this.#waiting.push(0);
    for (; this.#waiting[0] === 0 && this.#oldestTurn < this.#turn; this.#oldestTurn++) this.#waiting.shift();
  }

  /** Accepts an ordinary call, or returns why it is refused. */
  accept(): OverloadCause | undefined {
    if (this.#lateTurns >= LATE_TURNS && this.#acceptedThisTurn >= LATE_CALLS_PER_TURN) return "event_loop";
    if (this.storeIsBusy()) return "store";
    this.#acceptedThisTurn++;
    return undefined;
  }

  /** Returns whether no ordinary command may join those that wait for the store. */
  storeIsBusy(): boolean {
    const { maxWaiting } = this.#options;
    if (maxWaiting === 0) return false;
    return this.#waitingCount >= maxWaiting || (this.#waitingCount >= PROBES && this.#storeIsLate());
  }

  /** Returns whether so many commands wait for the store that even those which end sessions are refused. */
  storeIsFull(): boolean {
    const { maxWaiting } = this.#options;
    return maxWaiting > 0 && this.#waitingCount >= ENDINGS_FACTOR * Math.max(maxWaiting, PROBES);
  }

  /** Notes that a command is sent to the store. @returns the value to pass to `finish` */
  begin(): number {
    this.#count(this.#turn, 1);
    return this.#turn;
  }

  /**
   * Notes that a command has ended.
   *
   * @param outcome `slow`: the reply arrived, but its duration does not show how fast the store is (commands that end sessions wait for
   *   replicas); `lost`: the outcome of the command is unknown
   */
  finish(begun: number, outcome: "replied" | "slow" | "lost"): void {
    this.#count(begun, -1);
    this.#silent = outcome === "lost";
    if (outcome === "lost") return;
    this.#lastReplyTurn = this.#turn;
    if (outcome === "replied") this.#lastWaitTurns = this.#turn - begun;
  }

  #count(begun: number, change: 1 | -1): void {
    const index = begun - this.#oldestTurn;
    this.#waiting[index] = (this.#waiting[index] ?? 0) + change;
    this.#waitingCount += change;
  }

  /** The number of the current turn of the event loop. Callers pass it to `hear` as the time at which a command began. */
  get now(): number {
    return this.#turn;
  }

  /** Records a reply to a command that is not counted as waiting. After an outage such a reply is the first sign of a recovery. */
  hear(begun: number): void {
    this.#silent = false;
    this.#lastReplyTurn = this.#turn;
    // A short wait of this command shows that the store is fast. A long one shows nothing: a read of the whole revocation log, for example,
    // takes long although the store is not late. So the recorded wait may become shorter here, but not longer.
    this.#lastWaitTurns = Math.min(this.#lastWaitTurns, this.#turn - begun);
  }

  get waiting(): number {
    return this.#waitingCount;
  }

  /**
   * A store is late if a command was lost, if no reply has come for a while, or if the last reply took long. One of several nodes
   * that is down does not count: the replies of the others keep coming in time.
   */
  #storeIsLate(): boolean {
    if (this.#silent || this.#lastWaitTurns >= this.#maxStoreTurns) return true;
    const oldest = this.#waitingCount === 0 ? this.#turn : this.#oldestTurn;
    return this.#turn - Math.max(oldest, this.#lastReplyTurn) >= this.#maxStoreTurns;
  }
}
