import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FeedBatch, RevocationFeed } from "../../../src/service/session/feed/feed.ts";
import type { SessionId } from "../../../src/service/session/model.ts";
import { type SessionStore, StoreUnavailable } from "../../../src/service/session/ports.ts";
import { type StoreMs, wallMs } from "../../../src/service/session/time.ts";
import { createEmbeddedStore } from "../../../src/service/store/embedded/store.ts";
import { createRandom, systemEntropy } from "../../../src/service/tokens/random.ts";
import { inTime } from "../until.ts";

export const MARKER_LIFE = 300_000;
export const random = createRandom(systemEntropy());

export type FeedWorld = ReturnType<typeof createFeedWorld>;

/** Creates a real store with a clock that the test moves and an outage that the test switches on and off. */
export function createFeedWorld() {
  const directory = mkdtempSync(join(tmpdir(), "feed-"));
  let now = Date.now();
  let down = false;
  let stall: PromiseWithResolvers<void> | undefined;
  let reading = false;
  let here = now;
  let ran = 0;
  const clock = () => now;
  const path = join(directory, "sessions.db");
  const real = createEmbeddedStore({
    path,
    clock: () => wallMs(now),
    steady: clock,
    reuseIntervalMs: 10_000,
    markerLifeMs: MARKER_LIFE,
  });
  const feeds: RevocationFeed[] = [];
  return {
    clock,
    advance(ms: number) {
      now += ms;
    },
    /** The clock of the processes that run the feeds. It differs from the store's clock. */
    processClock: () => here,
    advanceProcess(ms: number) {
      here += ms;
      ran += ms;
    },
    /** Advances the clock of the processes that run the feeds, as if they had been suspended. */
    stopProcess(ms: number) {
      here += ms;
    },
    set down(value: boolean) {
      down = value;
    },
    /** While the store is stalled, reading the log yields neither a result nor an error. */
    set stalled(value: boolean) {
      if (value) stall = Promise.withResolvers<void>();
      else stall?.resolve();
    },
    get isReading() {
      return reading;
    },
    reads: 0,
    /** @param ahead by how many ms the clock of the process is ahead of the store's */
    follow(onError: (error: unknown) => void = () => {}, ahead = 0): RevocationFeed {
      const store: Pick<SessionStore, "revocations" | "onRevocation"> = {
        revocations: async (cursor) => {
          this.reads++;
          if (down) throw new StoreUnavailable("down");
          reading = true;
          await stall?.promise;
          reading = false;
          return real.revocations(cursor);
        },
        onRevocation: (wake) => real.onRevocation(wake),
      };
      return this.manage(
        new RevocationFeed({
          store,
          clock: () => here + ahead,
          ranMs: () => ran,
          cpuMs: () => 0,
          instance: random.nonce(),
          onError,
        }),
      );
    },
    /** Closes a feed at the end of the test. */
    manage(feed: RevocationFeed): RevocationFeed {
      feeds.push(feed);
      return feed;
    },
    async end(sid = random.sessionId("alice")): Promise<SessionId> {
      await real.end(sid, "logout");
      return sid;
    },
    revokeAll: (createdBefore?: StoreMs) => real.revokeAll(createdBefore),
    async close() {
      // After a test that has failed, a reading may still be stalled.
      stall?.resolve();
      await Promise.all(feeds.map((feed) => feed.close()));
      await real.close();
      rmSync(directory, { recursive: true });
    },
  };
}

/** Opens a watch. It tries again, as clients do, while the feed has not read the log yet. */
export async function open(feed: RevocationFeed, cursor = "") {
  const abort = new AbortController();
  for (;;) {
    const watch = feed.watch(cursor, abort.signal);
    try {
      const first = await next(watch);
      return { watch, first, stop: () => abort.abort() };
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      await new Promise(setImmediate);
    }
  }
}

export async function next(watch: AsyncGenerator<FeedBatch, void>): Promise<FeedBatch> {
  const { value } = await inTime("a batch of the feed", watch.next());
  if (!value) throw new Error("the watch has ended");
  return value;
}

/** Reads until the end of the session `sid` is delivered. Returns the batch that contains it. */
export function until(watch: AsyncGenerator<FeedBatch, void>, sid: SessionId): Promise<FeedBatch> {
  let isOver = false;
  const read = async () => {
    for (;;) {
      const batch = await next(watch);
      if (isOver || batch.revocations.some((revocation) => revocation.sid === sid)) return batch;
    }
  };
  // Heartbeats come for as long as the watch is open.
  return inTime(`a batch with the end of ${sid}`, read()).finally(() => {
    isOver = true;
  });
}
