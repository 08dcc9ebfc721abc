/** Prints batches of the feed as lines. Each ending is printed once, although the feed repeats some. */
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Revocation, WatchRevocationsResponse } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import type { Context } from "../context.ts";
import { printable } from "../output/printable.ts";
import { isoText } from "../output/times.ts";

/** The width of the longest reason, for columns. */
const REASON_WIDTH = 16;

type Options = { readonly new?: boolean; readonly json?: boolean };

export class FeedPrinter {
  readonly #context: Pick<Context, "print" | "note">;
  readonly #options: Options;
  /** The printed sessions, with the time, in ms, at which the feed forgets each. */
  readonly #known = new Map<string, number>();
  readonly #revokedKeys = new Set<string>();
  #revokedUntilMs = 0;
  #isBehind = false;
  /** Whether the feed is still delivering endings from before the command was started. */
  #isSnapshot = true;

  constructor(context: Pick<Context, "print" | "note">, options: Options) {
    this.#context = context;
    this.#options = options;
  }

  /** Prints the entries of a batch that were not in an earlier batch. */
  print(batch: WatchRevocationsResponse): void {
    for (const revocation of batch.revocations) this.#printEnding(revocation);
    for (const kid of batch.revokedKeyIds) this.#printKey(kid);
    this.#printEndOfAll(batch.revokedUntilTime);
    this.#forget(batch.asOfTime);
    if (batch.caughtUp) this.#isSnapshot = false;
    // The snapshot may take several batches. Until its end, a batch without `caughtUp` does not mean that the store fails.
    if (this.#isSnapshot || this.#isBehind !== batch.caughtUp) return;
    this.#isBehind = !batch.caughtUp;
    this.#context.note(
      batch.caughtUp ? "the feed is current again" : "the store does not respond: endings may be missing",
    );
  }

  #printEnding({ sessionId, reason, revokeTime, expireTime }: Revocation): void {
    if (this.#known.has(sessionId)) return;
    this.#known.set(sessionId, msOf(expireTime));
    const time = isoText(revokeTime);
    this.#emit(
      { event: "session_ended", sessionId, reason, revokeTime: time },
      `${time}  ${printable(reason).padEnd(REASON_WIDTH)}  ${printable(sessionId)}`,
    );
  }

  #printKey(kid: string): void {
    if (this.#revokedKeys.has(kid)) return;
    this.#revokedKeys.add(kid);
    this.#emit(
      { event: "key_revoked", kid },
      `signing key ${printable(kid)} is revoked: its access tokens are refused`,
    );
  }

  #printEndOfAll(until: Timestamp | undefined): void {
    if (until === undefined || timestampMs(until) <= this.#revokedUntilMs) return;
    this.#revokedUntilMs = timestampMs(until);
    const time = isoText(until);
    this.#emit(
      { event: "all_ended", createdUntilTime: time },
      `every session that was created until ${time} has ended`,
    );
  }

  #emit(event: object, line: string): void {
    if (this.#isSnapshot && this.#options.new) return;
    this.#context.print(this.#options.json ? JSON.stringify(event) : line);
  }

  #forget(asOf: Timestamp | undefined): void {
    const now = msOf(asOf);
    for (const [sessionId, expiresAt] of this.#known) if (expiresAt < now) this.#known.delete(sessionId);
  }
}

const msOf = (time: Timestamp | undefined) => (time === undefined ? 0 : timestampMs(time));
