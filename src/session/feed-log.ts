import type { Revocation, SessionId } from "./model.ts";
import type { StoreMs } from "./time.ts";

/** The revocations that have not expired, in memory. The position of an entry is the number of entries appended before it. */
export class FeedLog {
  readonly #entries: Revocation[] = [];
  /** The time until which each session is revoked. If a session was revoked twice, its second revocation may expire later. */
  readonly #latestExpiry = new Map<SessionId, StoreMs>();
  #start = 0;

  /** The position of the oldest entry. */
  get start(): number {
    return this.#start;
  }

  /** The position after the newest entry. */
  get end(): number {
    return this.#start + this.#entries.length;
  }

  /** Returns at most `limit` entries from a position on. Entries that have been forgotten are left out. */
  read(position: number, limit: number): Revocation[] {
    const from = Math.max(0, position - this.#start);
    return this.#entries.slice(from, from + limit);
  }

  /** Appends the revocations that the log does not contain yet. */
  append(revocations: readonly Revocation[], now: StoreMs): void {
    for (const entry of revocations) {
      const { sid, expiresAt } = entry;
      if (expiresAt <= now || expiresAt <= (this.#latestExpiry.get(sid) ?? 0)) continue;
      this.#latestExpiry.set(sid, expiresAt);
      this.#entries.push(entry);
    }
  }

  forgetExpired(now: StoreMs): void {
    let expired = 0;
    for (const { sid, expiresAt } of this.#entries) {
      if (expiresAt > now) break;
      if (this.#latestExpiry.get(sid) === expiresAt) this.#latestExpiry.delete(sid);
      expired++;
    }
    this.#entries.splice(0, expired);
    this.#start += expired;
  }
}
