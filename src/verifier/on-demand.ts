import { pause } from "../clock/pause.ts";
import type { PolledRevocations } from "./polled-revocations.ts";
import { VerifierClosedError } from "./ready.ts";

/** How long `ready` waits between two attempts, in ms. */
const RETRY_MS = 1000;

type OnDemandDeps = {
  readonly keys: { isDue(nowMs: number): boolean; read(): Promise<void>; isTrusted(nowMs: number): boolean };
  readonly polls: PolledRevocations | undefined;
  readonly clock: () => number;
  readonly monotonic: () => number;
  readonly signal: AbortSignal;
};

/**
 * Reads keys and revocations when a token is verified, and never in between. It is for isolates in which nothing survives the request
 * that began it.
 */
export class OnDemand {
  readonly #deps: OnDemandDeps;

  constructor(deps: OnDemandDeps) {
    this.#deps = deps;
  }

  /** Reads what is due. Returns undefined if nothing is. It never rejects. */
  refresh(): Promise<unknown> | undefined {
    const { keys, polls, clock, monotonic } = this.#deps;
    const nowMs = monotonic();
    const due = [...(keys.isDue(nowMs) ? [keys.read()] : []), ...(polls?.isDue(nowMs, clock()) ? [polls.poll()] : [])];
    return due.length === 0 ? undefined : Promise.all(due);
  }

  /** Resolves when keys and revocations are known. @throws an error if the admin token is refused, VerifierClosedError */
  async ready(): Promise<void> {
    const { keys, polls, clock, monotonic, signal } = this.#deps;
    const isKnown = () =>
      keys.isTrusted(monotonic()) && (polls === undefined || Number.isFinite(polls.stalenessMs(monotonic(), clock())));
    for (;;) {
      await this.refresh();
      if (polls?.fault !== undefined) throw polls.fault;
      if (isKnown()) return;
      if (signal.aborted) throw new VerifierClosedError();
      await pause(RETRY_MS, signal);
    }
  }
}
