/** Follows the revocation feed, and reconnects when the connection is lost. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import type {
  Revocation,
  StaleTokens,
  WatchRevocationsResponse,
} from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { type AdminApi, openAdminApi } from "../admin-api/client.ts";
import type { ConnectionOptions } from "../admin-api/options.ts";
import { type Context, EXIT, usageError } from "../context.ts";
import { printable } from "../output/text.ts";
import { isoText } from "../output/times.ts";

type WatchOptions = ConnectionOptions & {
  readonly new?: boolean;
  readonly once?: boolean;
  readonly json?: boolean;
};

/** The first pause before reconnecting, in ms. Each further failure doubles it, up to the maximum. */
const FIRST_RETRY_MS = 250;
const LAST_RETRY_MS = 5_000;
/** A feed sends a heartbeat every second. If it is silent for this long, in ms, it counts as lost. */
const SILENCE_MS = 10_000;

export async function watch(context: Context, options: WatchOptions): Promise<void> {
  if (options.new && options.once) throw usageError("--new and --once exclude each other");
  const api = openAdminApi(context.env, options);
  const print = createFeedPrinter(context, options);
  let cursor = "";
  let retryMs = FIRST_RETRY_MS;
  let isConnected = false;
  for (;;) {
    try {
      for await (const batch of batches(api, cursor)) {
        if (!isConnected) context.note(cursor === "" ? `connected to ${api.url}` : `connected to ${api.url} again`);
        isConnected = true;
        retryMs = FIRST_RETRY_MS;
        print(batch);
        cursor = batch.cursor;
        if (options.once && batch.caughtUp) return;
      }
    } catch (error) {
      const failure = api.failure(error);
      const isFirst = cursor === "" && !isConnected;
      const isLost = failure.exitCode === EXIT.unavailable || ConnectError.from(error).code === Code.ResourceExhausted;
      if (isFirst || options.once || !isLost) throw failure;
      if (isConnected) context.note(failure.message);
    }
    isConnected = false;
    await sleep(retryMs);
    retryMs = Math.min(retryMs * 2, LAST_RETRY_MS);
  }
}

/** Yields the batches from a cursor on, until the connection ends or is silent. */
async function* batches(api: AdminApi, cursor: string) {
  const silent = new AbortController();
  const timer = setTimeout(() => silent.abort(new ConnectError("no heartbeat", Code.Unavailable)), SILENCE_MS);
  try {
    for await (const batch of api.client.watchRevocations({ cursor }, { signal: silent.signal })) {
      timer.refresh();
      yield batch;
    }
  } finally {
    clearTimeout(timer);
    silent.abort();
  }
}

/** The length of the longest reason. */
const REASON_WIDTH = 16;

/** Returns a function that prints the entries of a batch. The feed may report an end or a change several times; it is printed once. */
export function createFeedPrinter(
  { print, note }: Pick<Context, "print" | "note">,
  options: Pick<WatchOptions, "new" | "json">,
) {
  /** The printed ends and changes of sessions, each with the time, in ms, after which the feed no longer reports it. */
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

  function printChange({ sessionId, minVersion, markTime, expireTime }: StaleTokens): void {
    const name = `${sessionId} ${minVersion}`;
    if (known.has(name)) return;
    known.set(name, msOf(expireTime));
    const time = isoText(markTime);
    const line = `${time}  ${"changed".padEnd(REASON_WIDTH)}  ${printable(sessionId)}`;
    emit({ event: "session_changed", sessionId, minVersion, markTime: time }, line);
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
    for (const change of batch.staleTokens) printChange(change);
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
