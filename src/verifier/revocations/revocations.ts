import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { WatchRevocationsResponse } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { afterReading, patientTimeout } from "../../platform/clock/after-reading.ts";
import { pause } from "../../platform/clock/pause.ts";
import { Freshness } from "./freshness.ts";
import { type FeedDeps, RevokedSessions } from "./revoked-sessions.ts";

/** A feed that is silent for this long, in ms, is replaced. Normally, three heartbeats arrive in that time. */
const MAX_SILENCE_MS = 3000;
/** The n-th retry waits for a random share of `FIRST_BACKOFF_MS × 2ⁿ`, or of `MAX_BACKOFF_MS` if that is less. */
const FIRST_BACKOFF_MS = 50;
const MAX_BACKOFF_MS = 2000;

/** Follows the revocation feed until `signal` is aborted. After an interruption it resumes, with capped and jittered backoff. */
export class Revocations extends RevokedSessions {
  /** Resolves when the current revocations are known; rejects for an error that no retry can fix, as of the admin token. */
  readonly ready: Promise<void>;
  readonly #deps: FeedDeps;
  readonly #setReady = Promise.withResolvers<void>();
  readonly #freshness = new Freshness();
  #following = false;

  constructor(deps: FeedDeps) {
    super(deps);
    this.#deps = deps;
    this.ready = this.#setReady.promise;
    this.ready.catch(() => {}); // This prevents an unhandled rejection. A caller that awaits `ready` gets the error nevertheless.
    void this.#follow();
  }

  /**
   * Returns the time since the service read the delivered revocations from its store, in ms; Infinity until everything has been delivered.
   */
  override stalenessMs(monotonicMs: number, wallMs: number): number {
    return this.#freshness.ageMs(monotonicMs, wallMs);
  }

  async #follow(): Promise<void> {
    const { monotonic, report, signal } = this.#deps;
    let attempt = 0;
    let lost = false;
    while (!signal.aborted) {
      const openedAtMs = monotonic();
      let isComplete = false;
      const error = await this.#followStream(() => {
        lost = false;
        isComplete = true;
      });
      if (signal.aborted) return;
      // A stream that fails as soon as it is complete does not shorten the waits: the next one probably fails as well.
      if (isComplete && monotonic() - openedAtMs >= MAX_BACKOFF_MS) attempt = 0;
      const fault = this.noteFailure(error);
      if (fault !== undefined) this.#setReady.reject(fault);
      if (!lost) report({ event: "feed_lost", error });
      lost = true;
      this.#following = false;
      const backoffMs = Math.random() * Math.min(MAX_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** attempt);
      attempt += 1;
      await pause(backoffMs, signal);
    }
  }

  /** Follows one stream until it ends, falls silent or is late. Returns the reason. */
  async #followStream(onComplete: () => void): Promise<unknown> {
    const { client, signal } = this.#deps;
    const given = new AbortController();
    const giveUp = (why: string) => given.abort(new Error(`the feed is ${why}`));
    const watch = () => patientTimeout(() => giveUp("silent"), MAX_SILENCE_MS);
    let cancelWatchdog = watch();
    this.#freshness.restart();
    try {
      const options = { signal: AbortSignal.any([signal, given.signal]), timeoutMs: 0 };
      for await (const batch of client.watchRevocations({ cursor: this.cursor }, options)) {
        cancelWatchdog();
        cancelWatchdog = watch();
        this.#receive(batch);
        // While this process was suspended, batches may have queued up. All of them are read before the newest one decides whether the feed
        // is late.
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

  #receive(batch: WatchRevocationsResponse): void {
    const { clock, monotonic, report } = this.#deps;
    this.apply(batch);
    this.#freshness.record(batch.asOfTime && timestampMs(batch.asOfTime), batch.caughtUp, monotonic(), clock());
    if (!batch.caughtUp) return;
    if (!this.#following) report({ event: "feed_following" });
    this.#following = true;
    this.#setReady.resolve();
  }
}
