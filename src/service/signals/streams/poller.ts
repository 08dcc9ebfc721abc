/** Serves polls of streams (RFC 8936 section 2), from any instance. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Requester } from "../../session/audit.ts";
import { ServiceError } from "../../session/errors.ts";
import type { SessionStore } from "../../session/ports.ts";
import { toSentSignal } from "../kinds/context.ts";
import { signalToken, streamEventToken } from "../kinds/ssf.ts";
import type { ManagementDeps } from "../manage.ts";
import { definitionOf, type PendingEvent } from "../model.ts";
import type { LoggedSignal, SignalLog } from "../ports.ts";
import { changeStream, findStream } from "./change.ts";
import type { StreamSubscription } from "./configuration.ts";
import { type PassDeps, passOver, type Verdicts } from "./poll-pass.ts";
import { GATHER_MS, WaitingPolls, waitForSignals } from "./poll-wait.ts";
import { VerdictMemory } from "./verdict-memory.ts";

export type PollerDeps = ManagementDeps & {
  readonly log: SignalLog;
  readonly store: Pick<SessionStore, "onRevocation" | "shiftMs">;
  readonly reports: {
    onAttempt(kind: "ssf_poll", error: "refused" | undefined, lagMs: number): void;
    onLoss(subscription: string, signals: number): void;
    onGivenUp(subscription: string, signals: number): void;
  };
};

type Poll = {
  readonly maxEvents: number | undefined;
  readonly returnImmediately: boolean;
  readonly verdicts: Verdicts;
};

type Polled = { readonly sets: Readonly<Record<string, string>>; readonly moreAvailable: boolean };

/** How many events one response contains at most. */
const MAX_EVENTS = 100;
const LONG_POLL_MS = 20_000;
/** How often a waiting poll reads its stream again, in ms. With a wait for signals, a pause holds within five seconds. */
const REFRESH_MS = 4_000;
/** How many signatures are made in one turn of the event loop. A signature takes about 0.1 ms. */
const SIGNED_AT_ONCE = 8;

export class Poller {
  readonly #deps: PollerDeps;
  readonly #memory = new VerdictMemory();
  readonly #waiting = new WaitingPolls();
  #start = 0;

  constructor(deps: PollerDeps) {
    this.#deps = deps;
  }

  /** Serves one poll. @param stopped is aborted when the poll must stop waiting @throws ServiceError */
  async poll(id: string, request: Poll, requester: Requester, stopped: AbortSignal): Promise<Polled> {
    let stream = await this.#settleEvents(await this.#find(id, requester), request.verdicts);
    const { maxEvents = MAX_EVENTS, returnImmediately } = request;
    const limit = Math.min(maxEvents, MAX_EVENTS);
    this.#memory.add(id, request.verdicts);
    const { owner } = stream.stream;
    // If too many polls wait already, a new one gets its response at once.
    const waits = !returnImmediately && limit > 0 && this.#waiting.enter(owner);
    const started = performance.now();
    let readAt = started;
    let gatherMs = GATHER_MS;
    try {
      for (;;) {
        const polled = await this.#take(stream, limit);
        const left = started + LONG_POLL_MS - performance.now();
        if (!waits || stopped.aborted || left <= 0 || Object.keys(polled.sets).length > 0) return polled;
        gatherMs = await waitForSignals(this.#deps.store, { leftMs: left, gatherMs }, stopped);
        if (performance.now() - readAt < REFRESH_MS) continue;
        readAt = performance.now();
        stream = await this.#find(id, requester);
      }
    } finally {
      if (waits) this.#waiting.leave(owner);
    }
  }

  async #find(id: string, requester: Requester): Promise<StreamSubscription> {
    const stream = await findStream(this.#deps, id, requester);
    if (stream.kind !== "ssf_poll") throw new ServiceError("E404_NOT_FOUND");
    return stream;
  }

  async #take(stream: StreamSubscription, limit: number): Promise<Polled> {
    const sets: Record<string, string> = {};
    const isActive = stream.state === "active";
    // A paused stream transmits only the event that it was paused (SSF 1.0 section 8.1.2.1).
    const due = (stream.stream.pending ?? []).filter(({ event }) => isActive || event.type === "stream-updated");
    const events = due.slice(0, limit);
    for (const event of events) sets[event.id] = await streamEventToken(event, stream, this.#signing());
    const hasMoreEvents = events.length < due.length;
    if (!isActive) return { sets, moreAvailable: hasMoreEvents };
    const { found, more } = await this.#pass(stream, limit - events.length);
    for (const [at, { signal }] of found.entries()) {
      if (at % SIGNED_AT_ONCE === 0) await nextTurn();
      sets[signal.id] = await signalToken(toSentSignal(signal, this.#deps.store), stream, this.#signing());
    }
    return { sets, moreAvailable: more || hasMoreEvents };
  }

  async #pass(stream: StreamSubscription, limit: number) {
    const { log, store, wallClock, subscriptions, reports } = this.#deps;
    const { id } = stream;
    const refused: LoggedSignal[] = [];
    let settled = 0;
    const deps: PassDeps = {
      log,
      start: this.#start++,
      onSettled: (logged, verdict) => {
        const lagMs = wallClock() - toSentSignal(logged.signal, store).happenedAt;
        if (verdict === "refused") refused.push(logged);
        else settled++;
        reports.onAttempt("ssf_poll", verdict === "refused" ? "refused" : undefined, lagMs);
      },
      onLoss: (signals) => reports.onLoss(id, signals),
    };
    const { found, more } = await this.#memory.settle(id, (verdicts) => passOver(deps, stream, verdicts, limit));
    if (refused.length > 0) reports.onGivenUp(id, refused.length);
    if (refused.length > 0) await subscriptions.recordAttempt(id, { error: "refused", at: wallClock() });
    else if (settled > 0 && stream.failures > 0) await subscriptions.recordAttempt(id, undefined);
    // Signals that another poll has acknowledged in the meantime are not returned.
    return { found: found.filter(({ signal }) => !this.#memory.has(id, signal.id)), more };
  }

  /** Deletes the events about the stream itself that the receiver has acknowledged. */
  async #settleEvents(stream: StreamSubscription, verdicts: Verdicts): Promise<StreamSubscription> {
    const isOpen = ({ id }: PendingEvent) => !verdicts.has(id);
    const { pending = [] } = stream.stream;
    if (pending.every(isOpen)) return stream;
    return changeStream(this.#deps, stream.id, (now) => {
      const { pending = [], ...settings } = now.stream;
      const left = pending.filter(isOpen);
      return { ...definitionOf(now), stream: { ...settings, ...(left.length > 0 && { pending: left }) } };
    });
  }

  #signing() {
    return { ...this.#deps, now: this.#deps.wallClock() };
  }
}
