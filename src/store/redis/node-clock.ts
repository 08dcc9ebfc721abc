/**
 * Estimates the clock of a Redis node: well enough to limit the time in which a command may act, and to notice that the clock was set.
 *
 * A reply that carries the node's time T, requested at `a` and received at `b` on this process's monotonic clock, shows that the node's
 * clock is ahead of this process's clock by T − b at least and by T − a at most. Windows for commands are computed with the lower bound,
 * so a command's time to act is over before its caller stops waiting, never after. Setting the machine's clock does not change the
 * monotonic clock.
 *
 * So a reply that contradicts earlier replies shows that the node's clock was set, or that another node responds. The store's time must
 * continue evenly nevertheless. So it is the time of the node's clock minus a `shift`, on which all instances agree (lua/sync.lua). Until
 * they have agreed on a new shift, no command may act.
 */
import { type WallMs, wallMs } from "../../session/time.ts";

export type Window = { readonly from: number; readonly until: number; readonly shift: number };

export class NodeClock {
  /** How far the node's clock is ahead of this process's clock, in ms: at least `#ahead` (undefined if unknown), at most `#aheadAtMost`. */
  #ahead: number | undefined;
  #aheadAtMost = 0;
  #shift = 0;
  /** How far the node's clock was set since the instances last agreed on the shift, in ms. */
  #step = 0;
  readonly #timeoutMs: number;

  /** @param timeoutMs how long a command may wait. A clock may drift, or be set, by less than this without being noticed. */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
  }

  /** How far the node's clock is ahead of the store's time, in ms. */
  get shiftMs(): number {
    return this.#shift;
  }

  get step(): number {
    return this.#step;
  }

  /** Updates the estimate. @param time the node's time, which was read between `sentAt` and `receivedAt` of this process's clock */
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

  /** Takes over the shift on which all instances have agreed. */
  settle(shift: number): void {
    this.#shift = shift;
    this.#step = 0;
  }

  /** Returns when a command that is sent now may act. If the node's clock is unknown or was set, that is never: the reply has its time. */
  window(now: number): Window {
    return this.#step === 0 ? this.expected(now) : { from: 1, until: 0, shift: this.#shift };
  }

  /** Returns between which times of the node's clock a command that is sent now will run, if that clock is not set in the meantime. */
  expected(now: number): Window {
    if (this.#ahead === undefined) return { from: 1, until: 0, shift: this.#shift };
    const sentAt = Math.floor(this.#ahead + now);
    return { from: sentAt - this.#timeoutMs, until: sentAt + this.#timeoutMs, shift: this.#shift };
  }

  /** Returns the present time of the node's clock; undefined while it is unknown. */
  wall(now: number): WallMs | undefined {
    return this.#ahead === undefined ? undefined : wallMs(Math.floor(this.#ahead + now));
  }
}
