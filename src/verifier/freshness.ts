/** A batch that is this much slower than the fastest of its stream is treated as silence. */
const MAX_DELAY_MS = 3000;

/**
 * The age of what the feed has delivered. Batches carry the store's time, whose offset from the local clocks is unknown: the
 * least (arrival − store time) of a stream stands for a batch without delay, and the excess of another batch is its age.
 * It is measured on two clocks and the greater age counts: the monotonic one never jumps, the wall clock goes on while
 * the machine is suspended.
 */
export class Freshness {
  readonly #monotonic = new Timeline();
  readonly #wall = new Timeline();

  /** A new stream may have another route and another clock at its end. The age of what is known is kept. */
  restart(): void {
    this.#monotonic.restart();
    this.#wall.restart();
  }

  /**
   * Records a batch.
   *
   * @param asOfMs the store's time; undefined from a service that does not send it
   * @param complete whether nothing that was revoked by then is missing
   * @param monotonicMs when it arrived
   * @param wallMs when it arrived
   */
  record(asOfMs: number | undefined, complete: boolean, monotonicMs: number, wallMs: number): void {
    this.#monotonic.record(asOfMs, complete, monotonicMs);
    this.#wall.record(asOfMs, complete, wallMs);
  }

  /** The age in ms; Infinity before the first complete batch. */
  ageMs(monotonicMs: number, wallMs: number): number {
    return Math.max(monotonicMs - this.#monotonic.knownAtMs, wallMs - this.#wall.knownAtMs);
  }

  /** Whether the last complete batch was so late that its stream should be replaced. */
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
