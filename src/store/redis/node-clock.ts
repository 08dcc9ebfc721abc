/**
 * What is known of the clock of a Redis node: enough to tell a command until when it may act.
 *
 * A reply that carries the node's time T, sent for at `a` and received at `b` on our monotonic clock, says that the node's
 * clock is ahead of ours by T − b at least and by T − a at most. The least is what is kept, so that a command's time to act
 * is over before its caller has been given up on, never after. Our own clock is monotonic: a step of the machine's wall
 * clock moves nothing.
 */
export type Window = { readonly from: number; readonly until: number };

/** Nothing is known: no command may act, and the reply says what time it is. */
const NEVER: Window = { from: 1, until: 0 };

export class NodeClock {
  /** How far the node's clock is ahead of ours, at least, ms. */
  #ahead: number | undefined;
  readonly #timeout: number;

  /** @param timeout how long a command may wait, ms */
  constructor(timeout: number) {
    this.#timeout = timeout;
  }

  /** @param time the node's, somewhere between `sentAt` and `receivedAt` of ours */
  learn(time: number, sentAt: number, receivedAt: number): void {
    const least = time - receivedAt;
    const most = time - sentAt;
    if (this.#ahead === undefined || least > this.#ahead || most < this.#ahead) this.#ahead = least;
  }

  /**
   * When a command that is sent now may act, by the node's clock. Earlier than one timeout ago is impossible unless that clock
   * was set back, and then nothing is known of it.
   */
  window(now: number): Window {
    if (this.#ahead === undefined) return NEVER;
    const sentAt = Math.floor(this.#ahead + now);
    return { from: sentAt - this.#timeout, until: sentAt + this.#timeout };
  }
}
