import { patientTimeout } from "../platform/clock/after-reading.ts";

/** Tells the parts of a verifier that it was closed. */
export class Closing {
  #isClosed = false;
  readonly #ends: (() => void)[] = [];

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Calls `end` when the verifier is closed. */
  onClose(end: () => void): void {
    this.#ends.push(end);
  }

  /**
   * Returns a signal that is aborted then. A verifier that polls has none: Workers refuse to create one in their global scope, and
   * one of a request cannot be used in the next one.
   */
  toSignal(): AbortSignal {
    const controller = new AbortController();
    this.onClose(() => controller.abort());
    return controller.signal;
  }

  close(): void {
    this.#isClosed = true;
    for (const end of this.#ends.splice(0)) end();
  }
}

/**
 * Returns a signal for one call, which is aborted after `ms` with the reason `why`, or when `closing` is. `end` is called after the call,
 * and releases what it still holds.
 */
export function limitCall(
  closing: AbortSignal | undefined,
  ms: number,
  why: string,
): { signal: AbortSignal; end(): void } {
  const controller = new AbortController();
  const cancelTimeout = patientTimeout(() => controller.abort(new Error(why)), ms);
  return {
    signal: closing === undefined ? controller.signal : AbortSignal.any([closing, controller.signal]),
    end() {
      cancelTimeout();
      controller.abort();
    },
  };
}

/**
 * Checks that something may wait here, as a verifier does that follows keys and revocations. The global scope of a Worker refuses timers,
 * and the edge functions of Next.js lack `AbortSignal.any`. @throws TypeError
 */
export function requireTimers(): void {
  try {
    clearTimeout(setTimeout(() => {}, 0));
    AbortSignal.any([]);
  } catch (cause) {
    throw new TypeError("createVerifier: pollIntervalMs is required where nothing runs between requests", { cause });
  }
}
