/** The clocks of the Redis nodes: one without a cluster; one for each partition in a cluster, because partitions move between nodes. */
import { NodeClock } from "./node-clock.ts";
import { TAGS } from "./partitions.ts";

/** Runs lua/sync.lua, which returns the time of a node, on a partition. */
type Ask = (tag: string, args: readonly (string | number)[]) => Promise<unknown>;

type Deps = {
  readonly clustered: boolean;
  readonly commandTimeoutMs: number;
  readonly steady: () => number;
  readonly ask: Ask;
};

/** How often a clock is read again if it was set during the reading. */
const ATTEMPTS = 3;

export class Clocks {
  readonly #deps: Deps;
  readonly #one: NodeClock;
  readonly #byTag = new Map<string, NodeClock>();
  readonly #settling = new Map<NodeClock, Promise<void>>();

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#one = new NodeClock(deps.commandTimeoutMs);
  }

  of(tag: string): NodeClock {
    if (!this.#deps.clustered) return this.#one;
    const known = this.#byTag.get(tag);
    if (known !== undefined) return known;
    const clock = new NodeClock(this.#deps.commandTimeoutMs);
    this.#byTag.set(tag, clock);
    return clock;
  }

  /** Compares the expected time of a partition's clock with its actual time, and agrees on the difference with the other instances. */
  settle(tag: string): Promise<void> {
    const clock = this.of(tag);
    const settling = this.#settling.get(clock) ?? this.#settle(this.#deps.clustered ? tag : (TAGS[0] ?? ""), clock);
    this.#settling.set(clock, settling);
    return settling;
  }

  /**
   * Agrees with the other instances on the shift of every clock, known to this instance or not, because only an instance that knew a
   * clock before it was set can notice that. A clock that cannot be read now is read with the next command.
   */
  async settleAll(): Promise<void> {
    await Promise.allSettled((this.#deps.clustered ? TAGS : TAGS.slice(0, 1)).map((tag) => this.settle(tag)));
  }

  async #settle(tag: string, clock: NodeClock): Promise<void> {
    const { ask, steady } = this.#deps;
    try {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const sentAt = steady();
        const { from, until, shift } = clock.expected(sentAt);
        const reply = await ask(tag, [from, until, clock.step === 0 ? "" : shift + clock.step]);
        const [time = 0, agreed = 0, inTime = 0] = (reply as readonly unknown[]).map((part) => Number(String(part)));
        const first = clock.wall(sentAt) === undefined;
        clock.observe(time, sentAt, steady());
        if (first || inTime === 1) return clock.settle(agreed);
      }
    } finally {
      this.#settling.delete(clock);
    }
  }
}
