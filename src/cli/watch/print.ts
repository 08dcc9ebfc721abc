/** Prints batches of the revocation feed as lines. The feed may report the end of a session several times, but it is printed once. */
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Revocation, WatchRevocationsResponse } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import type { Context } from "../context.ts";
import { printable } from "../output/printable.ts";
import { isoText } from "../output/times.ts";

/** The width of the longest reason, for columns. */
const REASON_WIDTH = 16;

type Options = { readonly new?: boolean; readonly json?: boolean };

/** Returns a function that prints the entries of a batch that were not in an earlier batch. */
export function createFeedPrinter({ print, note }: Pick<Context, "print" | "note">, options: Options) {
  /** The printed sessions, each with the time, in ms, after which the feed no longer reports its end. */
  const known = new Map<string, number>();
  const revokedKeys = new Set<string>();
  let revokedUntilMs = 0;
  let isBehind = false;
  /** Whether the feed is still delivering ends of sessions from before the command was started. */
  let isSnapshot = true;

  function emit(event: object, line: string): void {
    if (!isSnapshot || !options.new) print(options.json ? JSON.stringify(event) : line);
  }

  function printEnding({ sessionId, reason, revokeTime, expireTime }: Revocation): void {
    if (known.has(sessionId)) return;
    known.set(sessionId, msOf(expireTime));
    const time = isoText(revokeTime);
    const line = `${time}  ${printable(reason).padEnd(REASON_WIDTH)}  ${printable(sessionId)}`;
    emit({ event: "session_ended", sessionId, reason, revokeTime: time }, line);
  }

  function printKey(kid: string): void {
    if (revokedKeys.has(kid)) return;
    revokedKeys.add(kid);
    emit({ event: "key_revoked", kid }, `signing key ${printable(kid)} is revoked: its access tokens are refused`);
  }

  function printEndOfAll(until: Timestamp | undefined): void {
    if (msOf(until) <= revokedUntilMs) return;
    revokedUntilMs = msOf(until);
    const time = isoText(until);
    emit({ event: "all_ended", createdUntilTime: time }, `every session that was created until ${time} has ended`);
  }

  return (batch: WatchRevocationsResponse): void => {
    for (const revocation of batch.revocations) printEnding(revocation);
    for (const kid of batch.revokedKeyIds) printKey(kid);
    printEndOfAll(batch.revokedUntilTime);
    const now = msOf(batch.asOfTime);
    for (const [sessionId, expiresAt] of known) if (expiresAt < now) known.delete(sessionId);
    if (batch.caughtUp) isSnapshot = false;
    // The snapshot may take several batches. Until its end, a batch without `caughtUp` does not mean that the store fails.
    if (isSnapshot || isBehind !== batch.caughtUp) return;
    isBehind = !batch.caughtUp;
    note(batch.caughtUp ? "the feed is current again" : "the store does not respond: endings may be missing");
  };
}

const msOf = (time: Timestamp | undefined) => (time === undefined ? 0 : timestampMs(time));
