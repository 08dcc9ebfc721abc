/** A model of the event loop: timers, a poll that reads what has arrived, and what comes after it. The test lets time pass. */
import type { SteadyClock } from "../../src/clock/steady.ts";

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

  /** @param poll reads; called with the time up to which everything is there to be read */
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
