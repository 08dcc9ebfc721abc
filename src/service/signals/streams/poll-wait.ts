import type { SessionStore } from "../../session/ports.ts";

/** How often a waiting poll reads the log without a notification, in ms. Expiries and stored events come without a notification. */
const LOOK_MS = 1_000;
/** After the first signal has arrived, how long to wait for further signals to return together with it, in ms. */
export const GATHER_MS = 20;

/** How many polls may wait at the same time: in all, and from one receiver, so that no receiver excludes all others. */
const MAX_WAITING = { all: 64, receiver: 16 } as const;

/** Counts the waiting polls of an instance. */
export class WaitingPolls {
  readonly #waiting: string[] = [];

  /** Returns whether a poll of the receiver may wait. If so, the caller must call `leave` later. */
  enter(receiver: string): boolean {
    const own = this.#waiting.filter((one) => one === receiver).length;
    if (this.#waiting.length >= MAX_WAITING.all || own >= MAX_WAITING.receiver) return false;
    this.#waiting.push(receiver);
    return true;
  }

  leave(receiver: string): void {
    this.#waiting.splice(this.#waiting.indexOf(receiver), 1);
  }
}

type Wait = {
  readonly leftMs: number;
  /**
   * How long to wait for further signals after the first notification, in ms. The first wait of a poll uses GATHER_MS, and each further
   * wait uses the value that the wait before it returned.
   */
  readonly gatherMs: number;
};

/**
 * Resolves when there may be a signal to return, when the poll must stop waiting, or after `leftMs` at the latest.
 *
 * @returns the `gatherMs` of this poll's next wait: twice as long after a notification. A poll only waits again if the signals that it was
 *   notified of are not for its stream. While many sessions end, it would read all partitions up to 50 times a second for nothing.
 */
export async function waitForSignals(
  store: Pick<SessionStore, "onRevocation">,
  { leftMs, gatherMs }: Wait,
  stopped: AbortSignal,
): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = () => resolve();
  const look = setTimeout(end, Math.min(LOOK_MS, leftMs));
  let gather: NodeJS.Timeout | undefined;
  const stopHints = store.onRevocation(() => {
    gather ??= setTimeout(end, gatherMs);
  });
  stopped.addEventListener("abort", end);
  if (stopped.aborted) end();
  await promise;
  stopHints();
  stopped.removeEventListener("abort", end);
  clearTimeout(look);
  clearTimeout(gather);
  return gather === undefined ? GATHER_MS : Math.min(LOOK_MS, 2 * gatherMs);
}
