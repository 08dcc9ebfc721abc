/** Signals order this process to stop: SIGTERM gives clients time to switch to other instances, SIGINT and every further signal do not. */
import type { Logger } from "../observability/logger.ts";
import type { Service } from "./start.ts";
import type { StopMode } from "./stop.ts";

/** A signal that arrives again within this time, in ms, is the same order to stop, passed on by a parent process. */
const SAME_ORDER_MS = 500;

type Stoppable = Pick<Service, "stop">;

type Deps = {
  readonly log: Logger;
  /** Ends the process when the service has stopped. */
  readonly end: (stopped: Promise<void>) => unknown;
};

/** Obeys the signals that arrive from now on. */
export class StopSignals {
  readonly #deps: Deps;
  #first: { readonly signal: string; readonly atMs: number } | undefined;
  #service: Stoppable | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    for (const signal of ["SIGTERM", "SIGINT"]) process.on(signal, () => this.#obey(signal));
  }

  /** Whether a signal has arrived. */
  get hasArrived(): boolean {
    return this.#first !== undefined;
  }

  /** Sets what signals stop. Before that no requests are in flight, so a signal ends the process at once. */
  readonly setService = (service: Stoppable): void => {
    this.#service = service;
  };

  #obey(signal: string): void {
    const [first, nowMs] = [this.#first, performance.now()];
    if (first?.signal === signal && nowMs - first.atMs < SAME_ORDER_MS) return;
    this.#first ??= { signal, atMs: nowMs };
    const manner: StopMode = first === undefined && signal === "SIGTERM" ? "drain" : "now";
    this.#deps.log.info({ event: "stopping", signal, manner }, "stopping");
    this.#deps.end(Promise.resolve(this.#service?.stop(manner)));
  }
}
