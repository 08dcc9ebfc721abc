import type { SessionStore } from "../../session/ports.ts";

/** What no hint announces, such as expiry or an event for another instance, is looked for so often. */
const LOOK_MS = 1_000;
/** Signals that follow at once are returned together. */
const GATHER_MS = 20;

/** Polls that wait at the same time: in all, and of one receiver, so that no receiver takes the places of the others. */
const MAX_WAITING = { all: 64, receiver: 16 } as const;

/** Counts the polls of an instance that wait. */
export class WaitingPolls {
  /** The receiver of each. */
  readonly #waiting: string[] = [];

  /** Returns whether a poll of the receiver may wait. `leave` must follow if it may. */
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

/** Resolves when there may be something to return, at the latest after `leftMs`, or when it must not wait any more. */
export async function waitForSignals(
  store: Pick<SessionStore, "onRevocation">,
  leftMs: number,
  stopped: AbortSignal,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = () => resolve();
  const look = setTimeout(end, Math.min(LOOK_MS, leftMs));
  let gather: NodeJS.Timeout | undefined;
  const stopHints = store.onRevocation(() => {
    gather ??= setTimeout(end, GATHER_MS);
  });
  stopped.addEventListener("abort", end);
  if (stopped.aborted) end();
  await promise;
  stopHints();
  stopped.removeEventListener("abort", end);
  clearTimeout(look);
  clearTimeout(gather);
}
