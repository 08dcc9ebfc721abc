import type { Revocation } from "../session/model.ts";

type Wake = (hint: readonly Revocation[]) => void;

/** The set of listeners for revocations. It calls `first` when the first listener is added, and `last` when the last one is removed. */
export class Wakers {
  readonly #wakes = new Set<Wake>();
  readonly #first: () => void;
  readonly #last: () => void;

  constructor(first: () => void, last: () => void) {
    this.#first = first;
    this.#last = last;
  }

  add(wake: Wake): () => void {
    const own: Wake = (hint) => wake(hint); // A function may be added twice, so each gets a wrapper.
    this.#wakes.add(own);
    if (this.#wakes.size === 1) this.#first();
    return () => {
      if (this.#wakes.delete(own) && this.#wakes.size === 0) this.#last();
    };
  }

  wake(hint: readonly Revocation[]): void {
    for (const wake of this.#wakes) wake(hint);
  }
}
