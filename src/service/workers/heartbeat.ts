/**
 * Finds workers that have stalled: they run no more, but their listeners still get a share of the connections, which hang. A worker sends
 * heartbeats while its event loop turns.
 */
import type { ChildProcess } from "node:child_process";

/** How often a worker sends a heartbeat, and the supervisor looks for them, in ms. */
export const HEARTBEAT_MS = 1_000;

/**
 * A worker has stalled if it has sent nothing for this many looks in a row. An event loop that is overloaded is late by seconds at most.
 * Looks are counted, not the time: while the machine or the container was suspended, the supervisor did not look either.
 */
const MAX_SILENT_LOOKS = 30;
/** The same for a new worker until its first message: it loads its code, perhaps on a busy machine. */
const STARTING_LOOKS = 120;

export class Heartbeats {
  /** How many looks in a row have found nothing of each worker, and how many may. */
  readonly #silences = new Map<ChildProcess, { readonly looks: number; readonly most: number }>();
  readonly #onStall: (worker: ChildProcess, silentMs: number) => void;
  #stop: (() => void) | undefined;

  /** @param onStall is called once for each worker that has stalled */
  constructor(onStall: (worker: ChildProcess, silentMs: number) => void) {
    this.#onStall = onStall;
  }

  /** Notes that a worker was started. */
  expect(worker: ChildProcess): void {
    this.#silences.set(worker, { looks: 0, most: STARTING_LOOKS });
    if (this.#stop !== undefined) return;
    // What arrived while this process itself did not run is read before the look.
    const timer = setInterval(() => setImmediate(() => this.#look()), HEARTBEAT_MS);
    this.#stop = () => clearInterval(timer);
  }

  /** Notes that a worker has sent a message. */
  hear(worker: ChildProcess): void {
    if (this.#silences.has(worker)) this.#silences.set(worker, { looks: 0, most: MAX_SILENT_LOOKS });
  }

  forget(worker: ChildProcess): void {
    this.#silences.delete(worker);
    if (this.#silences.size > 0) return;
    this.#stop?.();
    this.#stop = undefined;
  }

  #look(): void {
    for (const [worker, { looks: before, most }] of this.#silences) {
      const looks = before + 1;
      this.#silences.set(worker, { looks, most });
      if (looks === most) this.#onStall(worker, looks * HEARTBEAT_MS);
    }
  }
}
