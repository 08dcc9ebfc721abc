/**
 * Admission under overload: new ordinary work is refused early, with 503 and Retry-After, while what was accepted keeps a
 * bounded latency. Two signals, both looked at once a tick and never on a clock, so that a pause of the whole process
 * (it comes back to replies that were there all along) is no overload:
 *
 * - The store: how many commands wait for it, and whether it replies in time.
 * - The event loop: whether its turns are late, twice in a row.
 *
 * Refusals are never total. A few commands are always under way and a few calls are always accepted per tick, so that
 * recovery is seen with the first reply.
 */

/** Why ordinary work is refused. */
export type OverloadCause = "store" | "event_loop";

export type AdmissionOptions = {
  /** How many commands may wait for the store; 0: any number. */
  readonly maxWaiting: number;
  /** How late turns of the event loop may be, ms; 0: as late as they like. */
  readonly maxLoopDelayMs: number;
  /** From when on the store counts as late, ms. */
  readonly maxStoreDelayMs: number;
  /** Milliseconds that never step back. */
  readonly clock?: () => number;
};

/** How often the signals are looked at, ms. */
export const TICK_MS = 50;
/** Commands that may wait for a store that is late: some of them find out that it is back. */
export const PROBES = 16;
/** Calls per tick that a late event loop still accepts. */
export const LATE_CALLS_PER_TICK = 64;
/** Turns in a row that must be late: one may be a pause, such as a garbage collection. */
const LATE_TURNS = 2;
/** Endings of sessions may wait in so many times the number: they go through as long as possible. */
const ENDINGS_FACTOR = 4;

export class Admission {
  readonly #options: AdmissionOptions;
  readonly #clock: () => number;
  readonly #maxStoreTicks: number;
  #tick = 0;
  #lastTickAt: number;
  #lateTurns = 0;
  #acceptedThisTick = 0;
  /** Commands that wait for the store, by the tick that they began in, oldest first. */
  readonly #waiting = new Map<number, number>();
  #waitingCount = 0;
  #lastReplyTick = 0;
  /** How long the command with the last reply waited, ticks. */
  #lastWaitTicks = 0;
  /** Whether a command was lost, and no reply has come since. */
  #silent = false;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#clock = options.clock ?? (() => performance.now());
    this.#maxStoreTicks = Math.max(1, Math.ceil(options.maxStoreDelayMs / TICK_MS));
    this.#lastTickAt = this.#clock();
  }

  /** Looks at the event loop. To be called by a timer, every TICK_MS. */
  tick(): void {
    const now = this.#clock();
    const late = now - this.#lastTickAt - TICK_MS > this.#options.maxLoopDelayMs;
    this.#lateTurns = late && this.#options.maxLoopDelayMs > 0 ? this.#lateTurns + 1 : 0;
    this.#lastTickAt = now;
    this.#tick++;
    this.#acceptedThisTick = 0;
  }

  /** Accepts an ordinary call, or returns why not. */
  accept(): OverloadCause | undefined {
    if (this.#lateTurns >= LATE_TURNS && this.#acceptedThisTick >= LATE_CALLS_PER_TICK) return "event_loop";
    if (this.storeIsBusy()) return "store";
    this.#acceptedThisTick++;
    return undefined;
  }

  /** Whether no ordinary command may join those that wait for the store. */
  storeIsBusy(): boolean {
    const { maxWaiting } = this.#options;
    if (maxWaiting === 0) return false;
    return this.#waitingCount >= maxWaiting || (this.#waitingCount >= PROBES && this.#storeIsLate());
  }

  /** The same for commands that end sessions. */
  storeIsFull(): boolean {
    const { maxWaiting } = this.#options;
    return maxWaiting > 0 && this.#waitingCount >= ENDINGS_FACTOR * Math.max(maxWaiting, PROBES);
  }

  /** A command goes to the store. @returns what `finish` takes */
  begin(): number {
    this.#waiting.set(this.#tick, (this.#waiting.get(this.#tick) ?? 0) + 1);
    this.#waitingCount++;
    return this.#tick;
  }

  /**
   * A command has ended.
   *
   * @param outcome `slow`: its reply came, and its duration is not the store's (endings wait for replicas); `lost`: its
   *   outcome is unknown
   */
  finish(begun: number, outcome: "replied" | "slow" | "lost"): void {
    const left = (this.#waiting.get(begun) ?? 1) - 1;
    if (left === 0) this.#waiting.delete(begun);
    else this.#waiting.set(begun, left);
    this.#waitingCount--;
    this.#silent = outcome === "lost";
    if (outcome === "lost") return;
    this.#lastReplyTick = this.#tick;
    if (outcome === "replied") this.#lastWaitTicks = this.#tick - begun;
  }

  /** Commands that wait for the store. */
  get waiting(): number {
    return this.#waitingCount;
  }

  /**
   * A store is late if a command was lost, if no reply has come for a while, or if the last reply took long. One of several nodes
   * that is down does not count: the replies of the others keep coming in time.
   */
  #storeIsLate(): boolean {
    if (this.#silent || this.#lastWaitTicks >= this.#maxStoreTicks) return true;
    const [oldest = this.#tick] = this.#waiting.keys();
    return this.#tick - Math.max(oldest, this.#lastReplyTick) >= this.#maxStoreTicks;
  }
}
