import { setTimeout as sleep } from "node:timers/promises";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import type { SessionAdminService, WatchRevocationsResponse } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { afterReading, patientTimeout } from "../clock/after-reading.ts";
import { Freshness } from "./freshness.ts";
import type { Report } from "./report.ts";

/** A feed that is silent for three heartbeats is replaced, ms. */
const MAX_SILENCE_MS = 3000;
/** The n-th retry waits for a random share of `FIRST_BACKOFF_MS × 2ⁿ`, or of `MAX_BACKOFF_MS` if that is less. */
const FIRST_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 2000;
/** How often expired entries are removed, in ms. */
const SWEEP_INTERVAL_MS = 10_000;

/** Errors that no retry fixes, with the text for the log. */
const CREDENTIAL_FAULTS: ReadonlyMap<Code, string> = new Map([
  [Code.Unauthenticated, "the admin API does not accept the verifier's adminToken"],
  [Code.PermissionDenied, "the verifier's adminToken lacks the scope `watch`"],
]);

type RevocationsDeps = {
  readonly client: Pick<Client<typeof SessionAdminService>, "watchRevocations">;
  /** The wall clock, in ms since the epoch. Tokens expire by it. */
  readonly clock: () => number;
  /** A clock that never jumps, in ms. The age of the feed is measured by it. */
  readonly monotonic: () => number;
  readonly revokeKeys: (kids: readonly string[]) => void;
  readonly report: Report;
  readonly signal: AbortSignal;
};

/** Follows the revocation feed until `signal` is aborted. After a cut it resumes, with capped and jittered backoff. */
export class Revocations {
  /** Resolves when the current revocations are known; rejects when the admin token is refused, or lacks the scope. */
  readonly ready: Promise<void>;
  readonly #deps: RevocationsDeps;
  readonly #setReady: PromiseWithResolvers<void>;
  readonly #freshness = new Freshness();
  /** Maps a `sid` to the time at which the session's last access token has expired, in ms. */
  readonly #expiries = new Map<string, number>();
  /** Sessions that were created at this time or before have ended, in ms. */
  #revokedUntilMs = Number.NEGATIVE_INFINITY;
  #cursor = "";
  #sweptAtMs: number;
  #following = false;
  #batches = 0;

  constructor(deps: RevocationsDeps) {
    this.#deps = deps;
    this.#sweptAtMs = deps.monotonic();
    this.#setReady = Promise.withResolvers<void>();
    this.ready = this.#setReady.promise;
    this.ready.catch(() => {}); // whoever awaits it reports the error
    void this.#follow();
  }

  /** Whether a session is revoked. @param createdAtMs the time at which the session was created */
  has(sid: string, createdAtMs: number): boolean {
    return createdAtMs <= this.#revokedUntilMs || this.#expiries.has(sid);
  }

  /**
   * Returns the age of what is known, in ms: the time since the service last read the store and delivered everything. Infinity before
   * that.
   */
  stalenessMs(monotonicMs: number, wallMs: number): number {
    return this.#freshness.ageMs(monotonicMs, wallMs);
  }

  /** Returns how many batches have been received. */
  get batches(): number {
    return this.#batches;
  }

  async #follow(): Promise<void> {
    const { report, signal } = this.#deps;
    let attempt = 0;
    let lost = false;
    while (!signal.aborted) {
      const error = await this.#followStream(() => {
        attempt = 0;
        lost = false;
      });
      if (signal.aborted) return;
      const code = error instanceof ConnectError ? error.code : undefined;
      // The cursor is not valid (another store, or a log trimmed past it), so the next stream starts from a snapshot.
      if (code === Code.InvalidArgument) this.#cursor = "";
      const fault = code && CREDENTIAL_FAULTS.get(code);
      if (fault !== undefined) this.#setReady.reject(new ConnectError(fault, code, undefined, undefined, error));
      if (!lost) report({ event: "feed_lost", error });
      lost = true;
      this.#following = false;
      const backoffMs = Math.random() * Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** attempt);
      attempt += 1;
      await sleep(backoffMs, undefined, { ref: false, signal }).catch(() => {});
    }
  }

  /** Follows one stream until it ends, falls silent or is late. Returns why. */
  async #followStream(onComplete: () => void): Promise<unknown> {
    const { client, signal } = this.#deps;
    const given = new AbortController();
    const giveUp = (why: string) => given.abort(new Error(`the feed is ${why}`));
    const watch = () => patientTimeout(() => giveUp("silent"), MAX_SILENCE_MS);
    let cancelWatchdog = watch();
    this.#freshness.restart();
    try {
      const options = { signal: AbortSignal.any([signal, given.signal]), timeoutMs: 0 };
      for await (const batch of client.watchRevocations({ cursor: this.#cursor }, options)) {
        cancelWatchdog();
        cancelWatchdog = watch();
        this.#apply(batch);
        // While this process was stopped, batches have waited for it. The newest of them decides whether the feed is late.
        if (this.#freshness.late) afterReading(() => this.#freshness.late && giveUp("late"));
        else if (batch.caughtUp) onComplete();
      }
      return new Error("the feed ended");
    } catch (error) {
      return error;
    } finally {
      cancelWatchdog();
    }
  }

  #apply(batch: WatchRevocationsResponse): void {
    const { clock, monotonic, revokeKeys, report } = this.#deps;
    this.#batches++;
    for (const { sessionId, expireTime } of batch.revocations) {
      const expiresAtMs = expireTime === undefined ? Number.POSITIVE_INFINITY : timestampMs(expireTime);
      this.#expiries.set(sessionId, Math.max(expiresAtMs, this.#expiries.get(sessionId) ?? 0));
    }
    if (batch.revokedUntilTime !== undefined) {
      this.#revokedUntilMs = Math.max(this.#revokedUntilMs, timestampMs(batch.revokedUntilTime));
    }
    if (batch.revokedKeyIds.length > 0) revokeKeys(batch.revokedKeyIds);
    this.#cursor = batch.cursor;
    const nowMs = monotonic();
    this.#freshness.record(batch.asOfTime && timestampMs(batch.asOfTime), batch.caughtUp, nowMs, clock());
    if (batch.caughtUp) {
      if (!this.#following) report({ event: "feed_following" });
      this.#following = true;
      this.#setReady.resolve();
    }
    if (nowMs - this.#sweptAtMs >= SWEEP_INTERVAL_MS) this.#sweep(nowMs, batch.asOfTime && timestampMs(batch.asOfTime));
  }

  /**
   * Forgets revocations that have expired both by the store's time, in which they are given, and by the clock that tokens expire by. The
   * two clocks may differ.
   */
  #sweep(nowMs: number, asOfMs = Number.POSITIVE_INFINITY): void {
    this.#sweptAtMs = nowMs;
    const overMs = Math.min(asOfMs, this.#deps.clock());
    for (const [sid, expiresAtMs] of this.#expiries) if (expiresAtMs <= overMs) this.#expiries.delete(sid);
  }
}
