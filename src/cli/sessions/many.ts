/** Calls for many items, to their end: what fails for the moment is tried again, what is left is known. */
import { setTimeout as wait } from "node:timers/promises";
import { CallFailure } from "../admin-api/failure.ts";
import { createProgress, type Progress } from "../output/progress.ts";

/** How many calls are under way at a time. */
const CONCURRENCY = 8;

/** How long a call waits for its next attempt, ms: doubled with each failure in a row, up to the last. */
const FIRST_WAIT_MS = 250;
const LAST_WAIT_MS = 5_000;

type Call<Item, Result> = (item: Item, signal: AbortSignal) => Promise<Result>;

type Patience = {
  /** How long the work goes on while no call succeeds, ms. A service that asks for more is not waited for. */
  readonly retryForMs: number;
  /** Ends the work: what is under way counts as left. */
  readonly signal: AbortSignal;
  /** Takes what there is to say meanwhile. */
  readonly note: (text: string) => void;
};

/** Tests give their own. */
export type Timing = {
  /** Milliseconds that never step back. */
  readonly clock: () => number;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<unknown>;
  /** 0 ≤ x < 1. */
  readonly random: () => number;
};

const REAL: Timing = {
  clock: () => performance.now(),
  sleep: (ms, signal) => wait(ms, undefined, { signal }),
  random: Math.random,
};

export type Outcome<Item, Result> = {
  /** In the order of the items, as `refused` and `left` are. */
  readonly done: readonly { readonly item: Item; readonly result: Result }[];
  /** No attempt will succeed. */
  readonly refused: readonly { readonly item: Item; readonly failure: CallFailure }[];
  /** To be done by another attempt. */
  readonly left: readonly Item[];
  /** Why something is left; undefined where nothing is, or the signal ended the work. */
  readonly failure: CallFailure | undefined;
};

/**
 * Calls `call` for every item, some at a time, with a bar on a terminal. It must be idempotent: an attempt without a response may have
 * taken effect.
 *
 * A worker that meets a failure waits, so that a service in trouble gets fewer calls. The others go on: a failure may be that of one
 * item, such as of a node of a cluster. The last attempt begins after the patience has run out: time in which this process did not run
 * costs no item its attempt.
 */
export function callForMany<Item, Result>(
  what: string,
  items: readonly Item[],
  call: Call<Item, Result>,
  patience: Patience,
  timing: Timing = REAL,
): Promise<Outcome<Item, Result>> {
  return new Work(what, items, call, patience, timing).run();
}

class Work<Item, Result> {
  readonly #items: readonly Item[];
  readonly #call: Call<Item, Result>;
  readonly #patience: Patience;
  readonly #timing: Timing;
  readonly #progress: Progress;
  /** Items that no worker holds, by their place in `#items`. */
  readonly #queue: number[];
  readonly #done = new Map<number, Result>();
  readonly #refused = new Map<number, CallFailure>();
  readonly #gaveUp = new AbortController();
  readonly #ended: AbortSignal;
  #failure: CallFailure | undefined;
  /** When the last call was decided. */
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

  async run(): Promise<Outcome<Item, Result>> {
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

  /** @returns a failure after which the item is to be tried again */
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
