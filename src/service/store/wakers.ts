import type { LogEntry } from "../session/model.ts";

type Wake = (hint: readonly LogEntry[]) => void;

/** The listeners that want to know when the revocation log has new entries. */
export type Wakers = {
  add(wake: Wake): () => void;
  wake(hint: readonly LogEntry[]): void;
};

/** Calls `first` when the first listener is added, and `last` when the last one is removed. */
export function createWakers(first = () => {}, last = () => {}): Wakers {
  const wakes = new Set<Wake>();
  return {
    add(wake) {
      const own: Wake = (hint) => wake(hint); // The same function may be added twice, so each addition gets its own wrapper.
      wakes.add(own);
      if (wakes.size === 1) first();
      return () => {
        if (wakes.delete(own) && wakes.size === 0) last();
      };
    },
    wake(hint) {
      for (const wake of wakes) wake(hint);
    },
  };
}
