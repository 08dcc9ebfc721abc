/**
 * A model of Node's event loop with three phases: timers, a poll that reads arrived data, and callbacks after the poll. The test moves
 * its clock.
 */
import type { SteadyClock } from "../../../src/platform/clock/turns.ts";

export class Loop {
  nowMs = 0;
  readonly clock: SteadyClock = Object.assign(() => this.nowMs, { refresh() {} });
  readonly #timers = new Set<{ readonly ms: number; readonly then: () => void; dueMs: number }>();
  #afterPoll: (() => void)[] = [];

  readonly every = (ms: number, then: () => void) => {
    const timer = { ms, then, dueMs: this.nowMs + ms };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  };

  readonly afterPoll = (then: () => void) => void this.#afterPoll.push(then);

  /** Runs one iteration of the loop. @param poll reads the data that arrived up to the time with which it is called */
  iterate(poll: (untilMs: number) => void): void {
    for (const timer of this.#timers) {
      if (timer.dueMs > this.nowMs) continue;
      timer.then();
      timer.dueMs = this.nowMs + timer.ms;
    }
    poll(this.nowMs);
    const due = this.#afterPoll;
    this.#afterPoll = [];
    for (const then of due) then();
  }
}
