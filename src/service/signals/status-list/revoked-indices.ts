import type { FeedBatch, RevocationFeed } from "../../session/feed/feed.ts";
import type { Clock } from "../../session/ports.ts";
import { latest, type StoreMs, storeMs, type WallClock, type WallMs } from "../../session/time.ts";
import { placeOf } from "./place.ts";

/** How long to wait before the feed is watched again after it has failed, in ms. */
const RETRY_MS = 500;
const SWEEP_INTERVAL_MS = 10_000;

/** The sessions of one status list that have ended. */
type Revoked = {
  /** A number that changes with each revocation and is unique among all lists. */
  version: number;
  /** Maps an index to the time when the last access token of its session has expired. */
  readonly indices: Map<number, StoreMs>;
};

type Deps = {
  readonly feed: Pick<RevocationFeed, "watchHere">;
  readonly wallClock: WallClock;
  readonly clock: Clock;
  readonly signal: AbortSignal;
};

const NOTHING: Readonly<Revoked> = { version: 0, indices: new Map() };

/** Follows the revocation feed of this instance, and keeps the indices of revoked sessions until their access tokens have expired. */
export class RevokedIndices {
  readonly #deps: Deps;
  readonly #lists = new Map<string, Revoked>();
  #revokedUntil: StoreMs | undefined;
  #cursor = "";
  #versions = 0;
  #sweptAtMs = 0;
  #knownAt: { readonly wall: WallMs; readonly steady: number } | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    void this.#follow();
  }

  /** Sessions that were created at this time or before have ended; undefined until the feed has been read. */
  get revokedUntil(): StoreMs | undefined {
    return this.#revokedUntil;
  }

  /** Returns the last time at which all revocations were known; undefined if that is longer ago than `maxAgeMs`. */
  knownAt(maxAgeMs: number): WallMs | undefined {
    const known = this.#knownAt;
    return known === undefined || this.#deps.clock() - known.steady > maxAgeMs ? undefined : known.wall;
  }

  of(list: string): { readonly version: number; readonly indices: ReadonlyMap<number, StoreMs> } {
    return this.#lists.get(list) ?? NOTHING;
  }

  async #follow(): Promise<void> {
    const { feed, signal } = this.#deps;
    while (!signal.aborted) {
      try {
        // The feed yields the first batch, and passes all further batches to #take.
        for await (const batch of feed.watchHere(this.#cursor, signal, (next) => this.#take(next))) this.#take(batch);
      } catch {
        // The error is ignored, because the feed reports its own faults. The lists are unavailable until the feed continues.
      }
      if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, RETRY_MS).unref());
    }
  }

  #take({ revocations, revokedUntil, caughtUp, asOf, cursor }: FeedBatch): undefined {
    // Sessions that have expired are left out: their access tokens have expired as well.
    for (const { sid, expiresAt, reason } of revocations) {
      if (reason === "expired") continue;
      const { list, index } = placeOf(sid);
      const revoked = this.#lists.get(list) ?? { version: 0, indices: new Map<number, StoreMs>() };
      revoked.version = ++this.#versions;
      revoked.indices.set(index, latest(expiresAt, revoked.indices.get(index) ?? storeMs(0)));
      this.#lists.set(list, revoked);
    }
    this.#cursor = cursor;
    this.#revokedUntil = latest(revokedUntil, this.#revokedUntil ?? storeMs(0));
    if (!caughtUp) return;
    const nowMs = this.#deps.clock();
    this.#knownAt = { wall: this.#deps.wallClock(), steady: nowMs };
    if (nowMs - this.#sweptAtMs < SWEEP_INTERVAL_MS) return;
    this.#sweptAtMs = nowMs;
    this.#forgetExpired(asOf);
  }

  #forgetExpired(now: StoreMs): void {
    for (const [list, { indices }] of this.#lists) {
      // The entries are in the order of their revocations, so those that expire soonest are mostly at the front.
      for (const [index, expiresAt] of indices) {
        if (expiresAt > now) break;
        indices.delete(index);
      }
      if (indices.size === 0) this.#lists.delete(list);
    }
  }
}
