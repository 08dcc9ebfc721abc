/**
 * Signals order this process to stop: SIGTERM gives clients time to switch to other instances, SIGINT and every further signal do not.
 * SIGHUP, which closes a terminal and reloads other servers, counts as SIGTERM: by default it would cut requests in flight.
 */
import type { Logger } from "../observability/logger.ts";
import type { Service } from "./start.ts";
import type { StopMode } from "./stop.ts";

/** The same order to stop that arrives again within this time, in ms, was passed on by a parent process. */
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
  #first: { readonly order: StopMode; readonly atMs: number } | undefined;
  #service: Stoppable | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    for (const signal of ["SIGTERM", "SIGHUP", "SIGINT"]) process.on(signal, () => this.#obey(signal));
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
    const order: StopMode = signal === "SIGINT" ? "now" : "drain";
    if (first?.order === order && nowMs - first.atMs < SAME_ORDER_MS) return;
    this.#first ??= { order, atMs: nowMs };
    const manner: StopMode = first === undefined ? order : "now";
    this.#deps.log.info({ event: "stopping", signal, manner }, "stopping");
    this.#deps.end(Promise.resolve(this.#service?.stop(manner)));
  }
}
