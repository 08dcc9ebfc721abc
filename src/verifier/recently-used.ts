/**
 * A bounded cache in two halves. Entries in use move to the young half; when that is full, the old half is dropped and the young one
 * becomes the old one. It keeps recently used entries at the cost of one or two map lookups.
 */
export class RecentlyUsed<V> {
  #young = new Map<string, V>();
  #old = new Map<string, V>();
  readonly #half: number;

  /** @param size the greatest number of entries, at least 2 */
  constructor(size: number) {
    this.#half = Math.floor(size / 2);
  }

  get(key: string): V | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) return young;
    const old = this.#old.get(key);
    if (old !== undefined) this.set(key, old);
    return old;
  }

  set(key: string, value: V): void {
    if (this.#young.size >= this.#half) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, value);
  }
}
