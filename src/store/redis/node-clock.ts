/**
 * What is known of the clock of a Redis node: enough to limit the time in which a command may act, and to notice that the clock was set.
 *
 * A reply that carries the node's time T, requested at `a` and received at `b` on our steady clock, shows that the node's clock
 * is ahead of ours by T − b at least and by T − a at most. The least is what is counted with, so that a command's time to act is over
 * before its caller has been given up on, never after. Our own clock is steady: that the machine's clock is set moves nothing.
 *
 * A reply that cannot be reconciled with those before shows that the node's clock was set (or that another node responds). The
 * store's time must go on as if it had not been: so it is the node's less a `shift`, on which all instances agree (lua/sync.lua).
 * Until that has been settled no command may act.
 */
import { type WallMs, wallMs } from "../../session/time.ts";

export type Window = { readonly from: number; readonly until: number; readonly shift: number };

export class NodeClock {
  /** How far the node's clock is ahead of ours, at least and at most, ms; undefined: nothing is known. */
  #ahead: number | undefined;
  #aheadAtMost = 0;
  #shift = 0;
  /** The amount by which the node's clock was set since all agreed, ms. */
  #step = 0;
  readonly #timeoutMs: number;

  /** @param timeoutMs how long a command may wait. By less than that a clock may drift or be set unnoticed. */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** The amount by which the node's clock is ahead of the store's time, ms. */
  get shiftMs(): number {
    return this.#shift;
  }

  get step(): number {
    return this.#step;
  }

  /** @param time the node's, somewhere between `sentAt` and `receivedAt` of ours */
  observe(time: number, sentAt: number, receivedAt: number): void {
    const least = time - receivedAt;
    const most = time - sentAt;
    if (this.#ahead !== undefined && least <= this.#aheadAtMost && most >= this.#ahead) {
      this.#ahead = Math.max(this.#ahead, least);
      this.#aheadAtMost = Math.min(this.#aheadAtMost, most);
      return;
    }
    if (this.#ahead !== undefined) {
      const step = Math.round(least > this.#aheadAtMost ? least - this.#aheadAtMost : most - this.#ahead);
      if (Math.abs(step) > this.#timeoutMs) this.#step += step;
    }
    this.#ahead = least;
    this.#aheadAtMost = most;
  }

  /** What all instances have agreed on. */
  settle(shift: number): void {
    this.#shift = shift;
    this.#step = 0;
  }

  /**
   * When a command that is sent now may act, by the node's clock: never, while nothing is known, and the reply contains the
   * time. A time of more than one timeout ago is impossible unless that clock was set back, and then nothing is known of it.
   */
  window(now: number): Window {
    return this.#step === 0 ? this.expected(now) : { from: 1, until: 0, shift: this.#shift };
  }

  /** When a command that is sent now will run, by the node's clock, if that is not set meanwhile. */
  expected(now: number): Window {
    if (this.#ahead === undefined) return { from: 1, until: 0, shift: this.#shift };
    const sentAt = Math.floor(this.#ahead + now);
    return { from: sentAt - this.#timeoutMs, until: sentAt + this.#timeoutMs, shift: this.#shift };
  }

  /** What the node's clock shows now; undefined while it is unknown. */
  wall(now: number): WallMs | undefined {
    return this.#ahead === undefined ? undefined : wallMs(Math.floor(this.#ahead + now));
  }
}
