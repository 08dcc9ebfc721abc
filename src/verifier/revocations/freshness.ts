/** A stream is replaced if its last complete batch is delayed by more than this, compared with its fastest batch, in ms. */
const MAX_DELAY_MS = 3000;

/**
 * Measures the age of the data from the revocation feed. Batches contain the store's time, whose offset from local clocks is unknown, so
 * the batch with the smallest difference (arrival − store time) is assumed to have no delay. The delay of any other batch is its difference
 * minus the smallest one. Two clocks are used, and the greater age counts: the monotonic clock never jumps, and the wall clock continues
 * while the machine is suspended.
 */
export class Freshness {
  readonly #monotonic = new Timeline();
  readonly #wall = new Timeline();

  /** Starts a new stream, which may have another network path, and another clock in the service. The age of the present data is kept. */
  restart(): void {
    this.#monotonic.restart();
    this.#wall.restart();
  }

  /**
   * Records a batch, with its time of arrival by both clocks.
   * @param asOfMs the store's time; undefined if the service does not send it
   * @param complete whether the batches so far contain everything that was revoked by then
   */
  record(asOfMs: number | undefined, complete: boolean, monotonicMs: number, wallMs: number): void {
    this.#monotonic.record(asOfMs, complete, monotonicMs);
    this.#wall.record(asOfMs, complete, wallMs);
  }

  /** Returns the age of the delivered data in ms; Infinity before the first complete batch. */
  ageMs(monotonicMs: number, wallMs: number): number {
    return Math.max(monotonicMs - this.#monotonic.knownAtMs, wallMs - this.#wall.knownAtMs);
  }

  /** Whether the last complete batch was so late that its stream must be replaced. */
  get late(): boolean {
    return Math.max(this.#monotonic.delayMs, this.#wall.delayMs) > MAX_DELAY_MS;
  }
}

class Timeline {
  knownAtMs = Number.NEGATIVE_INFINITY;
  delayMs = 0;
  #leastOffsetMs = Number.POSITIVE_INFINITY;

  restart(): void {
    this.#leastOffsetMs = Number.POSITIVE_INFINITY;
    this.delayMs = 0;
  }

  record(asOfMs: number | undefined, complete: boolean, nowMs: number): void {
    if (asOfMs !== undefined) this.#leastOffsetMs = Math.min(this.#leastOffsetMs, nowMs - asOfMs);
    if (!complete) return;
    this.delayMs = asOfMs === undefined ? 0 : nowMs - asOfMs - this.#leastOffsetMs;
    this.knownAtMs = nowMs - this.delayMs;
  }
}
