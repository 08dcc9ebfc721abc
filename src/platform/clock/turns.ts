/**
 * Turns measure the time in which this process ran. Timeouts for clients and servers count only this time.
 *
 * A turn takes at least `TURN_MS`, and ends when everything has been read that had arrived at its beginning. If the process was
 * stopped, busy or without a processor, that is one turn, however long it was. Counting turns therefore counts only time in which an
 * arrived reply would have been read. One timer serves all followers.
 *
 * Turns also show how long something may have waited to be read: at most since the beginning of the last turn that has ended.
 */
import { uptime } from "node:os";

/** The uptime and CLOCK_MONOTONIC may differ by this much without a sleep of the machine, in ms. */
const TOLERANCE_MS = 1_000;

/** Returns how long the machine has been up, including sleep. Only Linux reports this independently of the wall clock. */
const awakeAndAsleep = process.platform === "linux" ? () => uptime() * 1000 : () => performance.now();

/** A monotonic clock, in ms from an arbitrary moment: CLOCK_MONOTONIC plus the time in which the machine was asleep. */
export type SteadyClock = (() => number) & {
  /** Checks whether the machine has slept. Reading the clock does not check this, because a reading must be cheap. */
  refresh(): void;
};

export function createSteadyClock(up = awakeAndAsleep, awake = performance.now.bind(performance)): SteadyClock {
  const base = up() - awake();
  let slept = 0;
  const refresh = () => {
    const gap = up() - awake() - base;
    if (gap - slept > TOLERANCE_MS) slept = gap;
  };
  return Object.assign(() => awake() + slept, { refresh });
}

export const steadyClock = createSteadyClock();

export const TURN_MS = 50;

/** The clock and the functions that follow the event loop. Tests replace them. */
type Loop = {
  readonly clock: SteadyClock;
  /** Calls `then` repeatedly, each time before a poll of the event loop. @returns a function that stops it */
  readonly every: (ms: number, then: () => void) => () => void;
  /** Calls `then` once, after the next poll. */
  readonly afterPoll: (then: () => void) => void;
};

const LOOP: Loop = {
  clock: steadyClock,
  every(ms, then) {
    const timer = setInterval(then, ms).unref();
    return () => clearInterval(timer);
  },
  afterPoll: setImmediate,
};

export class Turns {
  readonly #loop: Loop;
  readonly #followers = new Set<() => void>();
  #stop: (() => void) | undefined;
  #count = 0;
  /** The time, by the monotonic clock in ms, up to which everything that had arrived has been read. Only this class writes it. */
  readUntilMs: number;

  constructor(loop = LOOP) {
    this.#loop = loop;
    this.readUntilMs = loop.clock();
  }

  /** Calls `onTurn` at the end of each turn. Turns are counted only while there are followers. @returns a function that stops it */
  follow(onTurn: () => void): () => void {
    const follower = () => onTurn(); // Each call creates a new wrapper, because the same function may be added twice.
    this.#followers.add(follower);
    if (this.#stop === undefined) {
      this.readUntilMs = this.#loop.clock();
      this.#stop = this.#loop.every(TURN_MS, () => this.#turn());
    }
    return () => {
      this.#followers.delete(follower);
      if (this.#followers.size > 0) return;
      this.#stop?.();
      this.#stop = undefined;
    };
  }

  /** Calls `then` once, after this process ran for `ms` milliseconds. @returns a function that cancels it */
  after(ms: number, then: () => void): () => void {
    let left = Math.ceil(ms / TURN_MS) + 1;
    const stop = this.follow(() => {
      if (--left > 0) return;
      stop();
      then();
    });
    return stop;
  }

  /** Returns the time in which this process ran, in ms: the turns that have ended. */
  ranMs(): number {
    return this.#count * TURN_MS;
  }

  /** Returns how long ago `since` was, in ms. The default: how long a message that is handled now may have waited to be read. */
  behindMs(since = this.readUntilMs): number {
    return this.#loop.clock() - since;
  }

  #turn(): void {
    const { clock, afterPoll } = this.#loop;
    clock.refresh();
    const beganMs = clock();
    afterPoll(() => {
      this.#count++;
      this.readUntilMs = beganMs;
      for (const follower of this.#followers) follower();
    });
  }
}

export const turns = new Turns();

/** Returns the processor time of this process, in ms: slightly more than that of the event loop while other threads work. */
export function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}
