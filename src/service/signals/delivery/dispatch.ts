/** Sends signals to receivers, a bounded number in each turn of the event loop, so that no logout is delayed. */
import { toSentSignal } from "../kinds/context.ts";
import type { DeliveryError, PauseReason } from "../model.ts";
import { attempt, type PushSubscription } from "./attempt.ts";
import type { Lane } from "./lane.ts";
import type { Item, Line } from "./line.ts";
import type { DeliveryDeps } from "./ports.ts";

/** A subscription whose signals are delivered. */
export type Destination = {
  readonly lane: Lane;
  subscription: PushSubscription;
  /** Whether the result of an attempt is being stored. Results of other attempts that end in the meantime are not stored. */
  recording: boolean;
};

/** How many requests begin in one turn. Each may need a signature, which takes some 0.1 ms. */
const PER_TURN = 8;
/**
 * The most requests that begin in a turn of the event loop that was late. Such a turn begins one request for each ms since it was
 * scheduled, and PER_TURN at least, because a busy thread has few turns.
 */
const MAX_PER_TURN = 32;

interface DispatchListener {
  /** Called when the queue of a partition (`Line`) has room for more signals. */
  onRoom(line: Line): void;
  /** Called when nothing more is to be delivered to a subscription. It ends the delivery, and never rejects. */
  onPaused(destination: Destination): Promise<void>;
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

  /** Sends the signals that are due to a subscription, beginning in the next turn of the event loop. */
  wake(destination: Destination): void {
    this.#awake.add(destination);
    if (this.#scheduledAt !== undefined || this.#stopped) return;
    this.#scheduledAt = this.#deps.clock();
    setImmediate(() => this.#turn());
  }

  /** Begins no more requests. Resolves when the requests under way have ended, each at its deadline at the latest. */
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
      // The subscription may have more signals to send. It is put at the end, so that all subscriptions have their turn.
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
    const signal = toSentSignal(item.signal, store);
    const { error, because } = await attempt(this.#deps, subscription, signal);
    const [failedBefore, givenUpBefore] = [lane.failures > 0, lane.givenUp];
    const settled = lane.settle(item, error, clock(), fraction());
    events.onAttempt(subscription.kind, error, wallClock() - signal.happenedAt);
    if (lane.givenUp > givenUpBefore) events.onGivenUp(subscription.id, 1);
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

  async #pause(destination: Destination, because: PauseReason): Promise<void> {
    const { subscription } = destination;
    const { subscriptions, events } = this.#deps;
    let isPaused: boolean;
    try {
      isPaused = await subscriptions.setState(subscription.id, { state: "paused", because }, { state: "active" });
    } catch (error) {
      // If the store fails, the subscription stays active, and the next failure of a delivery pauses it.
      return events.onFailure(error);
    }
    await this.#listener.onPaused(destination);
    // If the state has changed in the meantime, an operator or the receiver has paused the subscription, and their reason stays.
    if (isPaused) events.onPause(subscription.id, because);
  }
}
