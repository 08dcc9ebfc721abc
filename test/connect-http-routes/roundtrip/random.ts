/** Reproducible random numbers (mulberry32). */
export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Returns a number from 0, inclusive, to 1, exclusive. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = this.#state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Returns an integer from 0 to below the limit. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  /** Returns an integer of this many bits. */
  bits(count: number): bigint {
    let value = 0n;
    for (let done = 0; done < count; done += 32) value = (value << 32n) | BigInt(this.below(2 ** 32));
    const wanted = BigInt.asUintN(count, value);
    // Small numbers and the limits of the range are more likely than others, because they find more errors.
    return this.chance(0.5) ? wanted >> BigInt(this.below(count)) : wanted;
  }
}
