import { createProgress } from "../output/progress.ts";

/** How many calls are under way at a time. */
const CONCURRENCY = 8;

/**
 * Calls `act` for every item, some at a time, with a bar on a terminal. The first failure ends the work, after the calls
 * that are under way.
 *
 * @returns the results, in the order of the items
 */
export async function forEach<Item, Result>(
  what: string,
  items: readonly Item[],
  act: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = [];
  const progress = createProgress(what, items.length);
  let next = 0;
  let done = 0;
  const work = async () => {
    while (next < items.length) {
      const index = next++;
      try {
        results[index] = await act(items[index] as Item);
      } catch (error) {
        next = items.length;
        throw error;
      }
      progress.update(++done);
    }
  };
  const workers = await Promise.allSettled(Array.from({ length: CONCURRENCY }, work));
  progress.end();
  for (const worker of workers) if (worker.status === "rejected") throw worker.reason;
  return results;
}
