import type { SessionId } from "../../session/model.ts";
import type { Random } from "../../session/ports.ts";
import { LIST_SIZE, moveToList, placeOf } from "./place.ts";

/** The number of sessions in one list. At half of the capacity, two random indices on average find a free one. */
const MAX_TAKEN = LIST_SIZE / 2;

/**
 * Makes session ids that all differ in list or index. Each process uses lists of its own (`newList`), so no store is needed, and no
 * failover of the store can assign an index twice. The indices are random, so neighbouring indices reveal nothing.
 */
export function createListedRandom(random: Random, newList: () => string): Random {
  const taken = Buffer.alloc(LIST_SIZE / 8);
  let list = newList();
  let count = 0;

  /** Marks an index as taken. Returns whether it was free. */
  const take = (index: number): boolean => {
    const at = index >> 3;
    const bit = 1 << (index & 7);
    const byte = taken[at] ?? 0;
    if ((byte & bit) !== 0) return false;
    taken[at] = byte | bit;
    return true;
  };

  return {
    sessionId(subject): SessionId {
      if (count === MAX_TAKEN) {
        taken.fill(0);
        list = newList();
        count = 0;
      }
      count++;
      for (;;) {
        const sid = random.sessionId(subject);
        if (take(placeOf(sid).index)) return moveToList(sid, list);
      }
    },
    nonce: () => random.nonce(),
  };
}
