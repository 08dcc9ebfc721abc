/** Makes calls for many items. Temporary failures are retried, and unfinished items are reported. */
import { setTimeout as wait } from "node:timers/promises";
import { CallFailure } from "../admin-api/failure.ts";
import { createProgress, type Progress } from "../output/progress.ts";

const CONCURRENCY = 8;

/** The first pause before a retry, in ms. Each further failure in a row doubles it, up to the maximum. */
const FIRST_WAIT_MS = 250;
const LAST_WAIT_MS = 5_000;

type Call<Item, Result> = (item: Item, signal: AbortSignal) => Promise<Result>;

type Patience = {
  /** For how long work continues while no call succeeds, in ms. If the service asks to wait longer, the work ends. */
  readonly retryForMs: number;
  /** Ends the work when it is aborted. Items of calls in progress then count as unfinished. */
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
};

/** The clock, the pauses and the randomness; tests replace them. */
export type Timing = {
  /** Returns ms of a clock that never goes back. */
  readonly clock: () => number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
  /** Returns a random number, 0 ≤ x < 1. */
  readonly random: () => number;
};

const REAL: Timing = {
  clock: () => performance.now(),
  sleep: (ms, signal) => wait(ms, undefined, { signal }),
  random: Math.random,
};

export type WorkOutcome<Item, Result> = {
  /** The results in the order of the items. `refused` and `left` are in that order, too. */
  readonly done: readonly { readonly item: Item; readonly result: Result }[];
  /** Items for which every attempt would fail. */
  readonly refused: readonly { readonly item: Item; readonly failure: CallFailure }[];
  /** Unfinished items, which another attempt must do. */
  readonly left: readonly Item[];
  /** Why items are unfinished; undefined if there are none, or if the signal ended the work. */
  readonly failure: CallFailure | undefined;
};

/**
 * Calls `call` for every item, several at a time, with a progress bar on a terminal. `call` must be idempotent: an attempt without a
 * response may have taken effect. The last attempt begins after `retryForMs` is over, also if this process was stopped in the meantime.
 *
 * After a failure one of the parallel calls pauses, so that a service in trouble gets fewer calls. The others continue, because a failure
 * may concern only one item, such as the sessions of one cluster node.
 */
export function callForMany<Item, Result>(
  what: string,
  items: readonly Item[],
  call: Call<Item, Result>,
  patience: Patience,
  timing: Timing = REAL,
): Promise<WorkOutcome<Item, Result>> {
  return new Work(what, items, call, patience, timing).run();
}

class Work<Item, Result> {
  readonly #items: readonly Item[];
  readonly #call: Call<Item, Result>;
  readonly #patience: Patience;
  readonly #timing: Timing;
  readonly #progress: Progress;
  /** The indexes of the items that wait for an attempt. */
  readonly #queue: number[];
  readonly #done = new Map<number, Result>();
  readonly #refused = new Map<number, CallFailure>();
  readonly #gaveUp = new AbortController();
  readonly #ended: AbortSignal;
  #failure: CallFailure | undefined;
  /** When the last call succeeded or was refused. */
  #decidedAt: number;
  #isNoted = false;

  constructor(what: string, items: readonly Item[], call: Call<Item, Result>, patience: Patience, timing: Timing) {
    this.#items = items;
    this.#call = call;
    this.#patience = patience;
    this.#timing = timing;
    this.#progress = createProgress(what, items.length);
    this.#queue = [...items.keys()];
    this.#ended = AbortSignal.any([patience.signal, this.#gaveUp.signal]);
    this.#decidedAt = timing.clock();
  }

  async run(): Promise<WorkOutcome<Item, Result>> {
    const workers = await Promise.allSettled(Array.from({ length: CONCURRENCY }, () => this.#work()));
    this.#progress.end();
    for (const worker of workers) if (worker.status === "rejected") throw worker.reason;
    const all = [...this.#items.entries()];
    return {
      done: all.flatMap(([at, item]) => (this.#done.has(at) ? [{ item, result: this.#done.get(at) as Result }] : [])),
      refused: all.flatMap(([at, item]) => {
        const failure = this.#refused.get(at);
        return failure === undefined ? [] : [{ item, failure }];
      }),
      left: this.#items.filter((_, at) => !this.#done.has(at) && !this.#refused.has(at)),
      failure: this.#failure,
    };
  }

  async #work(): Promise<void> {
    let failures = 0;
    for (let at = this.#queue.shift(); at !== undefined && !this.#ended.aborted; at = this.#queue.shift()) {
      const failure = await this.#attempt(at);
      if (failure === undefined) failures = 0;
      else {
        await this.#waitAfter(failure, failures++);
        this.#queue.push(at);
      }
    }
  }

  /** Returns the failure if the item must be tried again. */
  async #attempt(at: number): Promise<CallFailure | undefined> {
    const begunAt = this.#timing.clock();
    try {
      this.#done.set(at, await this.#call(this.#items[at] as Item, this.#patience.signal));
    } catch (error) {
      if (this.#ended.aborted) return undefined;
      if (!(error instanceof CallFailure)) throw error;
      if (error.kind !== "refused") return this.#isLast(error, begunAt) ? this.#giveUp(error) : error;
      this.#refused.set(at, error);
    }
    this.#decidedAt = this.#timing.clock();
    this.#isNoted = false;
    this.#progress.update(this.#done.size + this.#refused.size);
    return undefined;
  }

  #isLast({ kind, retryAfterMs }: CallFailure, begunAt: number): boolean {
    const { retryForMs } = this.#patience;
    if (kind === "lasting" || retryForMs === 0 || retryAfterMs > retryForMs) return true;
    return begunAt - this.#decidedAt >= retryForMs;
  }

  #giveUp(failure: CallFailure): undefined {
    this.#failure ??= failure;
    this.#gaveUp.abort();
  }

  async #waitAfter({ message, retryAfterMs }: CallFailure, failures: number): Promise<void> {
    if (!this.#isNoted) {
      this.#progress.end();
      this.#patience.note(`${message}; done: ${this.#done.size} of ${this.#items.length}; trying again`);
      this.#isNoted = true;
    }
    const backoffMs = Math.min(LAST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
    const { sleep, random } = this.#timing;
    await sleep(retryAfterMs + backoffMs * (0.5 + random() / 2), this.#ended).catch(() => {});
  }
}
