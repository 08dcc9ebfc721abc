/**
 * The 256 partitions of the sessions, and the clocks of the nodes that have them. A session's partition is the first byte of the SHA-256 of
 * its subject, which is also the first byte of its id. All keys of a partition have its hash tag, so that they are in one slot of a cluster
 * and one script can change them.
 */
import { hash } from "node:crypto";
import type { SessionId, StorePart } from "../../session/model.ts";
import type { SessionStore } from "../../session/ports.ts";
import { toStoreTime, type WallMs, wallMs } from "../../session/time.ts";

/** The Redis hash tags of the partitions, `{00}` to `{ff}`. */
export const TAGS: readonly string[] = Array.from(
  { length: 256 },
  (_, byte) => `{${byte.toString(16).padStart(2, "0")}}`,
);

/** The partition for data that belongs to no single session, such as the subscriptions. */
export const FIRST_TAG = TAGS[0] ?? "";

/** Maps the first two characters of a session id, which contain its first byte and four bits of the second one, to the hash tag. */
const BY_START = new Map<string, string>();
for (const [byte, tag] of TAGS.entries()) {
  for (let next = 0; next < 256; next += 16) BY_START.set(Buffer.of(byte, next).toString("base64url").slice(0, 2), tag);
}

export function tagOfSession(sid: SessionId): string {
  return BY_START.get(sid.slice(0, 2)) ?? "";
}

export function tagOfSubject(subject: string): string {
  return `{${hash("sha256", subject).slice(0, 2)}}`;
}

function tagOf(place: StorePart): string {
  return "sid" in place ? tagOfSession(place.sid) : tagOfSubject(place.subject);
}

/** Splits tags into groups of at most `most`, each for one script. In a cluster a script can only use one partition. */
export function slicesOf(
  { clustered }: { readonly clustered: boolean },
  most = TAGS.length,
  tags = TAGS,
): readonly (readonly string[])[] {
  const size = clustered ? 1 : most;
  return Array.from({ length: Math.ceil(tags.length / size) }, (_, at) => tags.slice(at * size, (at + 1) * size));
}

export type Window = { readonly from: number; readonly until: number; readonly shift: number };

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
export class NodeClock {
  /** How far the node's clock is ahead of this process's clock, in ms: at least `#ahead` (undefined if unknown), at most `#aheadAtMost`. */
  #ahead: number | undefined;
  #aheadAtMost = 0;
  /** How far the node's clock is ahead of the store's time, in ms. */
  shiftMs = 0;
  /** How far the node's clock was set since the instances last agreed on the shift, in ms. */
  #step = 0;
  readonly #timeoutMs: number;

  /** @param timeoutMs how long a command may wait. A clock may drift, or be set, by less than this without being noticed. */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
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

  /** Takes over the shift (how far the clock is ahead of the store's time) on which all instances have agreed. */
  settle(shift: number): void {
    this.shiftMs = shift;
    this.#step = 0;
  }

  /**
   * Returns between which times of the node's clock a command that is sent now may act. If that clock is unknown or was set, there is no
   * such time: the node refuses the command with an error that contains the present time of the clock.
   * @param wasSet how far the clock was set, if the command may nevertheless act
   */
  window(now: number, wasSet = 0): Window {
    if (this.#ahead === undefined || this.#step !== wasSet) return { from: 1, until: 0, shift: this.shiftMs };
    const sentAt = Math.floor(this.#ahead + now);
    return { from: sentAt - this.#timeoutMs, until: sentAt + this.#timeoutMs, shift: this.shiftMs };
  }

  /** Returns the present time of the node's clock; undefined while it is unknown. */
  wall(now: number): WallMs | undefined {
    return this.#ahead === undefined ? undefined : wallMs(Math.floor(this.#ahead + now));
  }
}

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

/** The clocks of the nodes: one without a cluster; one for each partition in a cluster, because partitions move between nodes. */
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

  /** The store's time. Without a place, the shift is that of the first partition, because the clocks of the nodes differ only a little. */
  readonly time: Pick<SessionStore, "now" | "shiftMs"> = {
    now: (sid) => {
      const clock = this.of(tagOfSession(sid));
      return toStoreTime(clock.wall(this.#deps.steady()) ?? wallMs(Date.now()), clock.shiftMs);
    },
    shiftMs: (place) => (this.#deps.clustered && place !== undefined ? this.of(tagOf(place)) : this.#one).shiftMs,
  };

  /** Compares the expected time of a partition's clock with its actual time, and agrees on the difference with the other instances. */
  settle(tag: string): Promise<void> {
    const clock = this.of(tag);
    const settling = this.#settling.get(clock) ?? this.#settle(this.#deps.clustered ? tag : FIRST_TAG, clock);
    this.#settling.set(clock, settling);
    return settling;
  }

  /**
   * Agrees with the other instances on the shift of every node's clock, and so reads also the clocks that this instance has not read yet:
   * it can notice that a clock was set only if it has read the clock before. A clock that cannot be read now is read by the next command.
   */
  async settleAll(): Promise<void> {
    await Promise.allSettled((this.#deps.clustered ? TAGS : TAGS.slice(0, 1)).map((tag) => this.settle(tag)));
  }

  async #settle(tag: string, clock: NodeClock): Promise<void> {
    const { ask, steady } = this.#deps;
    try {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const sentAt = steady();
        const { from, until, shift } = clock.window(sentAt, clock.step);
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
