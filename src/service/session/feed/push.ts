import type { FeedBatch, NextBatch } from "./batches.ts";
import type { FeedWakes } from "./wakes.ts";

/** Sends a batch to a watcher. Returns a promise if the next batch must wait for it. An error that it throws ends the watch. */
export type TakeBatch = (batch: FeedBatch) => Promise<void> | undefined;

/** A watcher's position in the revocation log, and whether a batch is to be sent to the watcher at once. */
export type WatchState = { readonly position: number; readonly isBehind: boolean };

/** The state in which `pushAtOnce` stops: `taking` must be awaited, more batches are to be sent, or the watch ends. */
type HeldUp = Pick<NextBatch, "position" | "isComplete"> & {
  readonly wakeCount: number;
  readonly taking: Promise<void> | undefined;
};

type Feed = {
  readonly wakes: FeedWakes;
  /** Returns the batch after a position; undefined once the feed is closed. */
  readonly next: (position: number) => NextBatch | undefined;
};

/**
 * Passes batches to `take` as they arrive, until `take` returns a promise or the watch ends. A watcher that keeps up costs one call of
 * `take` for each batch: promises and async iterables would cost several times as much as writing the bytes.
 */
export function pushAtOnce(
  { position, isBehind }: WatchState,
  take: TakeBatch,
  signal: AbortSignal,
  { wakes, next }: Feed,
): Promise<HeldUp> {
  return new Promise((resolve, reject) => {
    let at = position;
    const end = () => {
      wakes.delete(push);
      signal.removeEventListener("abort", push);
    };
    const push = () => {
      try {
        const wakeCount = wakes.count;
        const given = signal.aborted ? undefined : next(at);
        const taking = given && take(given.batch);
        if (given !== undefined) at = given.position;
        const isComplete = given?.isComplete ?? true;
        if (given !== undefined && isComplete && taking === undefined) return;
        end();
        resolve({ position: at, isComplete, wakeCount, taking });
      } catch (error) {
        end();
        reject(error);
      }
    };
    wakes.add(push);
    signal.addEventListener("abort", push);
    if (isBehind || signal.aborted) push();
  });
}
