/**
 * A bounded cache of two maps. An entry that is used moves to the young map. When the young map is full, it becomes the old one, and the
 * entries of the previous old map are dropped.
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
