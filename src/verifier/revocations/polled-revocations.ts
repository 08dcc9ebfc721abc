import { limitCall } from "../closing.ts";
import { shareByPolling } from "../one-at-a-time.ts";
import { type FeedDeps, RevokedSessions } from "./revoked-sessions.ts";

const TIMEOUT_MS = 5000;
/** How long to wait after a failed poll before the next one, in ms. If `pollIntervalMs` is shorter, that is the wait. */
const COOLDOWN_MS = 1000;

type PolledRevocationsDeps = Omit<FeedDeps, "signal"> & {
  /** The age of the known revocations, in ms, at which the feed is read again. */
  readonly pollIntervalMs: number;
};

/**
 * Reads the revocation feed by polls. Each poll opens the feed at the cursor and closes it after everything has been read. The age of its
 * result is the time since its request.
 */
export class PolledRevocations extends RevokedSessions {
  readonly #deps: PolledRevocationsDeps;
  readonly #oneAtATime = shareByPolling();
  #knownAtMs = Number.NEGATIVE_INFINITY;
  #knownAtWallMs = Number.NEGATIVE_INFINITY;
  #triedAtMs = Number.NEGATIVE_INFINITY;
  /** Whether the last poll succeeded; undefined until the first poll has ended. */
  #following: boolean | undefined;
  #fault: Error | undefined;

  constructor(deps: PolledRevocationsDeps) {
    super(deps);
    this.#deps = deps;
  }

  override stalenessMs(monotonicMs: number, wallMs: number): number {
    return Math.max(monotonicMs - this.#knownAtMs, wallMs - this.#knownAtWallMs);
  }

  /** Why no further poll can succeed: the admin token is refused or lacks the required scope, or this is not the admin API. */
  get fault(): Error | undefined {
    return this.#fault;
  }

  isDue(monotonicMs: number, wallMs: number): boolean {
    const { pollIntervalMs } = this.#deps;
    if (this.stalenessMs(monotonicMs, wallMs) < pollIntervalMs) return false;
    return monotonicMs - this.#triedAtMs >= (this.#following === false ? Math.min(pollIntervalMs, COOLDOWN_MS) : 0);
  }

  /** Polls the feed. If a poll is already under way, waits for that poll instead. */
  poll(): Promise<void> {
    return this.#oneAtATime.run(() => this.#poll());
  }

  override underWay(): Promise<void> | undefined {
    return this.#oneAtATime.isUnderWay() ? this.#oneAtATime.settle() : undefined;
  }

  async #poll(): Promise<void> {
    const { client, clock, monotonic, report } = this.#deps;
    const [startedAtMs, startedAtWallMs] = [monotonic(), clock()];
    const call = limitCall(undefined, TIMEOUT_MS, "the feed does not catch up");
    this.#triedAtMs = startedAtMs;
    try {
      await this.#readUntilCaughtUp(client, call.signal);
      this.#knownAtMs = startedAtMs;
      this.#knownAtWallMs = startedAtWallMs;
      this.#fault = undefined;
      if (!this.#following) report({ event: "feed_following" });
      this.#following = true;
    } catch (error) {
      this.#fault = this.noteFailure(error);
      if (this.#following !== false) report({ event: "feed_lost", error });
      this.#following = false;
    } finally {
      call.end();
    }
  }

  async #readUntilCaughtUp(client: PolledRevocationsDeps["client"], signal: AbortSignal): Promise<void> {
    for await (const batch of client.watchRevocations({ cursor: this.cursor }, { signal, timeoutMs: 0 })) {
      this.apply(batch);
      if (batch.caughtUp) return;
    }
    throw new Error("the feed ended before it had caught up");
  }
}
