import { setTimeout as sleep } from "node:timers/promises";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { SessionAdminService, WatchRevocationsResponse } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { Freshness } from "./freshness.ts";
import type { Report } from "./report.ts";

/** A feed that is silent for three heartbeats is cut and asked for anew, ms. */
const SILENCE = 3000;
/** How long to wait before the n-th attempt: a random share of this, ms. */
const FIRST_BACKOFF = 50;
const MAX_BACKOFF = 2000;
/** How often what has expired is forgotten, ms. */
const SWEEP = 10_000;

export interface Revocations {
  /** @param createdAt when the session was created, ms */
  has(sid: string, createdAt: number): boolean;
  /** How old our knowledge is, ms: since the service last read the store and told all of it. Infinity before it first has. */
  staleness(monotonic: number, wall: number): number;
  /** Resolves when all that was revoked at the start is known; rejects when we are not let in. */
  readonly ready: Promise<void>;
}

export type RevocationsOptions = {
  readonly client: Pick<Client<typeof SessionAdminService>, "watchRevocations">;
  /** Wall clock, ms since the epoch: the one that tokens expire by. */
  readonly clock: () => number;
  /** A clock that never jumps, ms: the one that the feed's age is told by. */
  readonly monotonic: () => number;
  readonly revokeKeys: (kids: readonly string[]) => void;
  readonly report: Report;
  readonly signal: AbortSignal;
};

/** Follows the revocation feed for ever: resumes where it was after a cut, with capped and jittered backoff. */
export function followRevocations(options: RevocationsOptions): Revocations {
  const { client, clock, monotonic, revokeKeys, report, signal } = options;
  /** sid → when its last access token has expired. */
  const revoked = new Map<string, number>();
  /** Sessions that were created at this time or before have all ended, ms. */
  let revokedUntil = Number.NEGATIVE_INFINITY;
  const ready = Promise.withResolvers<void>();
  let cursor = "";
  const freshness = new Freshness();
  let sweptAt = monotonic();
  let following = false;

  const take = (batch: WatchRevocationsResponse): void => {
    for (const { sessionId, expireTime } of batch.revocations) {
      const until = expireTime === undefined ? Number.POSITIVE_INFINITY : timestampMs(expireTime);
      revoked.set(sessionId, Math.max(until, revoked.get(sessionId) ?? 0));
    }
    if (batch.revokedUntilTime !== undefined) {
      revokedUntil = Math.max(revokedUntil, timestampMs(batch.revokedUntilTime));
    }
    if (batch.revokedKeyIds.length > 0) revokeKeys(batch.revokedKeyIds);
    cursor = batch.cursor;
    const now = monotonic();
    freshness.heard(batch.asOfTime && timestampMs(batch.asOfTime), batch.caughtUp, now, clock());
    if (batch.caughtUp) {
      if (!following) report({ event: "feed_following" });
      following = true;
      ready.resolve();
    }
    if (now - sweptAt >= SWEEP) {
      sweptAt = now;
      // By the clock that tokens expire by: a sid is forgotten no sooner than its last token is refused for its age.
      for (const [sid, until] of revoked) if (until <= clock()) revoked.delete(sid);
    }
  };

  /** One stream, until it ends or falls silent. Returns why it ended. */
  const listen = async (onBatch: () => void): Promise<unknown> => {
    const silent = new AbortController();
    const watchdog = setTimeout(() => silent.abort(new Error("the feed fell silent")), SILENCE).unref();
    freshness.restart();
    try {
      const stream = client.watchRevocations(
        { cursor },
        { signal: AbortSignal.any([signal, silent.signal]), timeoutMs: 0 },
      );
      for await (const batch of stream) {
        watchdog.refresh();
        take(batch);
        if (freshness.late) return new Error("the feed comes late");
        if (batch.caughtUp) onBatch();
      }
      return new Error("the feed ended");
    } catch (error) {
      return error;
    } finally {
      clearTimeout(watchdog);
    }
  };

  const follow = async (): Promise<void> => {
    let attempt = 0;
    let lost = false;
    while (!signal.aborted) {
      const error = await listen(() => {
        attempt = 0;
        lost = false;
      });
      if (signal.aborted) return;
      // A cursor that is not understood (another store, a log trimmed past it): from a snapshot again.
      if (error instanceof ConnectError && error.code === Code.InvalidArgument) cursor = "";
      if (error instanceof ConnectError && error.code === Code.Unauthenticated) ready.reject(error); // nothing to wait for
      if (!lost) report({ event: "feed_lost", error });
      lost = true;
      following = false;
      const backoff = Math.random() * Math.min(MAX_BACKOFF, FIRST_BACKOFF * 2 ** attempt);
      attempt += 1;
      await sleep(backoff, undefined, { ref: false, signal }).catch(() => {});
    }
  };
  ready.promise.catch(() => {}); // whoever waits for it is told
  void follow();

  return {
    has: (sid, createdAt) => createdAt <= revokedUntil || revoked.has(sid),
    staleness: (monotonic, wall) => freshness.age(monotonic, wall),
    ready: ready.promise,
  };
}
