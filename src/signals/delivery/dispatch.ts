/** Sends what lanes have to deliver, a bounded amount in each turn of the event loop, so that no logout waits for it. */
import { toWallClock } from "../../session/time.ts";
import type { DeliveryError, KnownSubscription, PauseReason } from "../model.ts";
import { attempt, type PushSubscription } from "./attempt.ts";
import type { Lane } from "./lane.ts";
import type { Item, Line } from "./line.ts";
import type { DeliveryDeps } from "./ports.ts";

/** A subscription that is delivered to. */
export type Destination = {
  readonly lane: Lane;
  subscription: PushSubscription;
  /** Whether the result of an attempt is being stored; another result waits for the next attempt. */
  recording: boolean;
};

/** Requests that are begun in one turn: each may need a signature, which takes some 0.1 ms. */
const PER_TURN = 8;
/** So many, one for each ms that a turn came late, if the store or calls keep the thread busy: there are few turns then. */
const MAX_PER_TURN = 32;

interface DispatchListener {
  /** More may be read into a line. */
  onRoom(line: Line): void;
  /** Nothing more is delivered to a subscription. */
  onPaused(subscription: KnownSubscription): void;
}

export class Dispatch {
  readonly #deps: DeliveryDeps;
  readonly #awake = new Set<Destination>();
  readonly #listener: DispatchListener;
  readonly #underWay = new Set<Promise<void>>();
  #scheduledAt: number | undefined;
  #stopped = false;

  constructor(deps: DeliveryDeps, listener: DispatchListener) {
    this.#deps = deps;
    this.#listener = listener;
  }

  /** Sends what is due, from the next turn on. */
  wake(destination: Destination): void {
    this.#awake.add(destination);
    if (this.#scheduledAt !== undefined || this.#stopped) return;
    this.#scheduledAt = this.#deps.clock();
    setImmediate(() => this.#turn());
  }

  /** Begins nothing more. Resolves when the requests under way have ended, each by its deadline at the latest. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#awake.clear();
    await Promise.all(this.#underWay);
  }

  #turn(): void {
    const now = this.#deps.clock();
    let left = Math.min(MAX_PER_TURN, Math.max(PER_TURN, Math.floor(now - (this.#scheduledAt ?? now))));
    this.#scheduledAt = undefined;
    for (const destination of [...this.#awake]) {
      this.#awake.delete(destination);
      const items = destination.lane.take(now, left);
      left -= items.length;
      for (const item of items) this.#begin(destination, item);
      // It may have more. It goes to the end, so that all have their turn.
      if (items.length > 0) this.#awake.add(destination);
      if (left === 0) break;
    }
    const [next] = this.#awake;
    if (next !== undefined) this.wake(next);
  }

  #begin(destination: Destination, item: Item): void {
    const delivery = this.#deliver(destination, item).finally(() => this.#underWay.delete(delivery));
    this.#underWay.add(delivery);
  }

  async #deliver(destination: Destination, item: Item): Promise<void> {
    const { lane, subscription } = destination;
    const { clock, wallClock, fraction, store, events } = this.#deps;
    const { sessionId, endedAt } = item.signal;
    const endedAtWall = toWallClock(endedAt, store.shiftMs({ sid: sessionId }));
    const { error, because } = await attempt(this.#deps, subscription, { ...item.signal, endedAt: endedAtWall });
    const failedBefore = lane.failures > 0;
    const settled = lane.settle(item, error, clock(), fraction());
    events.onAttempt(subscription.kind, error, wallClock() - endedAtWall);
    if (error !== undefined || failedBefore) void this.#record(destination, error);
    const pause = because ?? (settled === "pause" ? "failing" : undefined);
    if (pause !== undefined) return this.#pause(destination, pause);
    if (item.line.more && item.line.open) this.#listener.onRoom(item.line);
    this.wake(destination);
  }

  async #record(destination: Destination, error: DeliveryError | undefined): Promise<void> {
    if (destination.recording) return;
    destination.recording = true;
    const { subscriptions, wallClock, events } = this.#deps;
    const failure = error === undefined ? undefined : { error, at: wallClock() };
    await subscriptions.recordAttempt(destination.subscription.id, failure).catch(events.onFailure);
    destination.recording = false;
  }

  async #pause({ lane, subscription }: Destination, because: PauseReason): Promise<void> {
    const { subscriptions, events } = this.#deps;
    let isPaused: boolean;
    try {
      isPaused = await subscriptions.setState(subscription.id, { state: "paused", because }, { state: "active" });
    } catch (error) {
      // It stays active, and the next failure pauses it.
      return events.onFailure(error);
    }
    lane.closeAll();
    this.#listener.onPaused(subscription);
    // Otherwise an operator or the receiver has paused or deleted it meanwhile, and their reason stands.
    if (isPaused) events.onPause(subscription.id, because);
  }
}
