/**
 * Turns: the time of this process, by which it judges others.
 *
 * A turn takes `TURN_MS` at least, and ends when everything has been read that had arrived at its beginning. However long the
 * process was stopped, starved of its processor or busy, that is one turn: whoever counts turns counts only time in which a reply
 * that was there would have been seen. One timer serves all who count.
 *
 * The same tells how long something may have waited to be read: no longer than since the beginning of the last turn that has ended.
 */
import { type SteadyClock, steadyClock } from "./steady.ts";

export const TURN_MS = 50;

/** How the event loop is followed; replaced by tests of its order. */
type Loop = {
  readonly clock: SteadyClock;
  /** Calls again and again, before a poll. @returns how to stop */
  readonly every: (ms: number, then: () => void) => () => void;
  /** Calls once, after the poll that comes next. */
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
  #readUntilMs: number;

  constructor(loop = LOOP) {
    this.#loop = loop;
    this.#readUntilMs = loop.clock();
  }

  /** Calls `onTurn` at the end of each turn. Turns are counted while there are followers. @returns how to stop */
  follow(onTurn: () => void): () => void {
    const follower = () => onTurn(); // the same function may follow twice
    this.#followers.add(follower);
    if (this.#stop === undefined) {
      this.#readUntilMs = this.#loop.clock();
      this.#stop = this.#loop.every(TURN_MS, () => this.#turn());
    }
    return () => {
      this.#followers.delete(follower);
      if (this.#followers.size > 0) return;
      this.#stop?.();
      this.#stop = undefined;
    };
  }

  /** Calls once, after so many ms in which this process ran. @returns how to cancel it */
  after(ms: number, then: () => void): () => void {
    let left = Math.ceil(ms / TURN_MS) + 1;
    const stop = this.follow(() => {
      if (--left > 0) return;
      stop();
      then();
    });
    return stop;
  }

  /** Time in which this process ran, ms: that of the turns that have ended. */
  ranMs(): number {
    return this.#count * TURN_MS;
  }

  /** What had arrived by then has been read, ms by the steady clock. */
  get readUntilMs(): number {
    return this.#readUntilMs;
  }

  /** How long ago that is: what is handled now has waited no longer to be read, ms. */
  behindMs(since = this.#readUntilMs): number {
    return this.#loop.clock() - since;
  }

  #turn(): void {
    const { clock, afterPoll } = this.#loop;
    clock.refresh();
    const beganMs = clock();
    afterPoll(() => {
      this.#count++;
      this.#readUntilMs = beganMs;
      for (const follower of this.#followers) follower();
    });
  }
}

/** Those of this process. */
export const turns = new Turns();
