/** Batches that come this much later than others of their stream did are as good as silence, ms. */
const LATE = 3000;

/**
 * How old what the feed told is. Batches carry the store's time, which has nothing in common with our clocks but its
 * pace: the least (arrival − store time) of a stream stands for a batch that came at once, and what another takes
 * beyond it is age. On two clocks, the greater age counts: one does not jump, the other one goes on in a suspended machine.
 */
export class Freshness {
  readonly #monotonic = new Timeline();
  readonly #wall = new Timeline();

  /** A new stream: another way, another machine at its end. What is known grows older as it did. */
  restart(): void {
    this.#monotonic.restart();
    this.#wall.restart();
  }

  /**
   * A batch has come.
   *
   * @param asOf the store's time, ms; undefined from a service that does not tell
   * @param toldAll whether nothing that was revoked by then is missing
   */
  heard(asOf: number | undefined, toldAll: boolean, monotonic: number, wall: number): void {
    this.#monotonic.heard(asOf, toldAll, monotonic);
    this.#wall.heard(asOf, toldAll, wall);
  }

  /** ms; Infinity before everything was told for the first time. */
  age(monotonic: number, wall: number): number {
    return Math.max(monotonic - this.#monotonic.knownAt, wall - this.#wall.knownAt);
  }

  /** Whether the last batch that told all came so late that its stream is not worth following. */
  get late(): boolean {
    return Math.max(this.#monotonic.excess, this.#wall.excess) > LATE;
  }
}

class Timeline {
  knownAt = Number.NEGATIVE_INFINITY;
  excess = 0;
  #least = Number.POSITIVE_INFINITY;

  restart(): void {
    this.#least = Number.POSITIVE_INFINITY;
    this.excess = 0;
  }

  heard(asOf: number | undefined, toldAll: boolean, now: number): void {
    if (asOf !== undefined) this.#least = Math.min(this.#least, now - asOf);
    if (!toldAll) return;
    this.excess = asOf === undefined ? 0 : now - asOf - this.#least;
    this.knownAt = now - this.excess;
  }
}
