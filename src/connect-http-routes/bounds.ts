/** Limits what all calls of a handler may use together: their number, the memory of their bodies, and the time of a body's arrival. */
import type { BodyMeter } from "./call/exchange.ts";
import { type Failure, FailureError, failures } from "./response/failure.ts";

export interface BoundsOptions {
  /** How many calls may be in flight, streams included. Further calls fail with 503. Default: 10,000. */
  readonly maxCalls?: number;
  /**
   * How many bytes of memory the bodies that are arriving and those of calls in flight may take together. When they take more, the oldest
   * body that is still arriving is refused with 503. Default: 128 MiB.
   */
  readonly maxPendingBodyBytes?: number;
  /**
   * How long a body, or a message of a request stream, may take to arrive, in milliseconds. If it takes longer, the request fails with 408.
   * Default: 60,000.
   */
  readonly bodyTimeoutMs?: number;
}

const DEFAULT_MAX_CALLS = 10_000;
const DEFAULT_MAX_PENDING_BODY_BYTES = 128 * 1024 * 1024;
const DEFAULT_BODY_TIMEOUT_MS = 60_000;

/** The longest interval between two checks for late bodies, in ms. It is shorter if four checks would not fit into `bodyTimeoutMs`. */
const MAX_CHECK_MS = 1_000;
const CHECKS_PER_TIMEOUT = 4;

export class Bounds {
  readonly #maxCalls: number;
  readonly #maxBytes: number;
  readonly #checkMs: number;
  readonly #maxTicks: number;
  /** Whether small bodies need no limit here: the number of calls is not limited, and the HTTP server limits the time of a body. */
  readonly ignoreSmall: boolean;
  /** Bodies that have not arrived completely, the oldest first. */
  readonly #arriving = new Set<CallInFlight>();
  #calls = 0;
  #bytes = 0;
  #timer: ReturnType<typeof setInterval> | undefined;

  constructor(options: BoundsOptions) {
    const { bodyTimeoutMs = DEFAULT_BODY_TIMEOUT_MS } = options;
    this.#maxCalls = options.maxCalls ?? DEFAULT_MAX_CALLS;
    this.#maxBytes = options.maxPendingBodyBytes ?? DEFAULT_MAX_PENDING_BODY_BYTES;
    this.#checkMs = Math.max(1, Math.min(MAX_CHECK_MS, bodyTimeoutMs / CHECKS_PER_TIMEOUT));
    this.#maxTicks = bodyTimeoutMs / this.#checkMs;
    this.ignoreSmall = this.#maxCalls === Number.POSITIVE_INFINITY && this.#maxTicks === Number.POSITIVE_INFINITY;
  }

  /** Counts a call until it ends. @throws FailureError `overloaded` if `maxCalls` calls are in flight */
  begin(): CallInFlight {
    if (this.#calls >= this.#maxCalls) throw new FailureError(failures.overloaded("too many calls are in flight"));
    this.#calls++;
    return new CallInFlight(this);
  }

  update(call: CallInFlight, bytes: number, isArriving: boolean): void {
    const isMore = bytes > call.bytes;
    this.#bytes += bytes - call.bytes;
    call.bytes = bytes;
    if (!isArriving) this.#arriving.delete(call);
    else if (!this.#arriving.has(call)) {
      call.ticks = 0;
      this.#arriving.add(call);
      this.#timer ??= this.#startTimer();
    }
    if (!isMore) return;
    for (const oldest of this.#arriving) {
      if (this.#bytes <= this.#maxBytes) return;
      this.#refuse(oldest, TOO_MANY_BYTES);
    }
    if (this.#bytes > this.#maxBytes) this.#refuse(call, TOO_MANY_BYTES);
  }

  end(call: CallInFlight): void {
    this.update(call, 0, false);
    this.#calls--;
  }

  #refuse(call: CallInFlight, failure: Failure): void {
    this.update(call, 0, false);
    call.refuse(new FailureError(failure));
  }

  /** Starts the timer whose ticks measure the time of bodies. While this process is stopped there are no ticks, so no body becomes late. */
  #startTimer(): ReturnType<typeof setInterval> {
    const timer = setInterval(() => {
      for (const call of this.#arriving) {
        if (++call.ticks > this.#maxTicks) this.#refuse(call, TOO_LATE);
      }
      if (this.#arriving.size > 0) return;
      clearInterval(this.#timer);
      this.#timer = undefined;
    }, this.#checkMs);
    // The timer would keep a process of Node running. Other runtimes have no `unref` and need none.
    timer.unref?.();
    return timer;
  }
}

const TOO_MANY_BYTES = failures.overloaded("too many request bodies are in memory");
const TOO_LATE = failures.bodyTimeout();

/** One call in flight and the body bytes that it has in memory. */
export class CallInFlight implements BodyMeter {
  readonly #bounds: Bounds;
  #refusal: FailureError | undefined;
  #onRefused: ((refusal: FailureError) => void) | undefined;
  #isOver = false;
  bytes = 0;
  ticks = 0;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
  }

  arriving(bytes: number): void {
    if (this.#refusal === undefined && !this.#isOver) this.#bounds.update(this, bytes, true);
  }

  /**
   * Records that the body, or a message of a stream, is complete, and that this many bytes stay in memory until the call ends.
   * @throws FailureError `overloaded`
   */
  hold(bytes: number): void {
    if (this.#refusal === undefined) this.#bounds.update(this, bytes, false);
    if (this.#refusal !== undefined) throw this.#refusal;
  }

  onRefused(callback: (refusal: FailureError) => void): void {
    this.#onRefused = callback;
  }

  refuse(refusal: FailureError): void {
    this.#refusal = refusal;
    this.#onRefused?.(refusal);
  }

  end(): void {
    this.#isOver = true;
    this.#bounds.end(this);
  }
}
