import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import type { WatchRevocationsResponse } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import type { AdminClient } from "../admin/api.ts";
import type { Report } from "../refusals/report.ts";

const SWEEP_INTERVAL_MS = 10_000;

/**
 * The `reason` in the feed for a session that has expired. It is ignored, because the access tokens of such a session have expired as well.
 */
const EXPIRED = "expired";

/** The errors that no retry can fix, with the text for the log. */
const FAULTS: ReadonlyMap<Code, string> = new Map([
  [Code.Unauthenticated, "the admin API does not accept the verifier's adminToken"],
  [Code.PermissionDenied, "the verifier's adminToken lacks the scope `watch`"],
  [Code.Unimplemented, "adminUrl is not the admin API, but perhaps the public one"],
]);

export type FeedDeps = {
  readonly client: Pick<AdminClient, "watchRevocations">;
  /** The wall clock, in ms since the epoch. It decides when tokens expire. */
  readonly clock: () => number;
  /** A monotonic clock, in ms. It measures the age of the feed. */
  readonly monotonic: () => number;
  readonly revokeKeys: (kids: readonly string[]) => void;
  readonly report: Report;
  readonly signal: AbortSignal;
};

type RevokedSessionsDeps = Pick<FeedDeps, "clock" | "monotonic" | "revokeKeys">;

/** The content of the feed's batches so far, from a stream or from polls. An entry is kept until the tokens that it refuses expire. */
export abstract class RevokedSessions {
  batches = 0;
  /** The cursor with which the next request for the feed continues. */
  protected cursor = "";
  readonly #deps: RevokedSessionsDeps;
  /** Maps a `sid` to the time at which the session's last access token has expired, in ms. */
  readonly #expiries = new Map<string, number>();
  /** Maps the `sid` of a session that has changed to the least version of its tokens that is accepted. */
  readonly #stale = new Map<string, { readonly minVersion: number; readonly expiresAtMs: number }>();
  /** Sessions that were created at this time or before have ended, in ms. */
  #revokedUntilMs = Number.NEGATIVE_INFINITY;
  #sweptAtMs: number;

  constructor(deps: RevokedSessionsDeps) {
    this.#deps = deps;
    this.#sweptAtMs = deps.monotonic();
  }

  /** Returns the age of the known revocations, in ms; Infinity before everything was delivered. */
  abstract stalenessMs(monotonicMs: number, wallMs: number): number;

  /** Resolves when the read under way has ended, or after a second; undefined if none is, as always while the feed is followed. */
  underWay(): Promise<void> | undefined {
    return undefined;
  }

  /** Returns whether a session is revoked. @param createdAtMs when the session was created */
  has(sid: string, createdAtMs: number): boolean {
    return createdAtMs <= this.#revokedUntilMs || this.#expiries.has(sid);
  }

  /** Returns the least version of a session's tokens (`sv`) that is accepted. */
  minVersion(sid: string): number {
    return this.#stale.get(sid)?.minVersion ?? 0;
  }

  protected apply(batch: WatchRevocationsResponse): void {
    this.batches++;
    for (const { sessionId, expireTime, reason } of batch.revocations) {
      if (reason === EXPIRED) continue;
      this.#expiries.set(sessionId, Math.max(toMs(expireTime), this.#expiries.get(sessionId) ?? 0));
    }
    for (const { sessionId, minVersion, expireTime } of batch.staleTokens) {
      const known = this.#stale.get(sessionId);
      this.#stale.set(sessionId, {
        minVersion: Math.max(minVersion, known?.minVersion ?? 0),
        expiresAtMs: Math.max(toMs(expireTime), known?.expiresAtMs ?? 0),
      });
    }
    if (batch.revokedUntilTime !== undefined) {
      this.#revokedUntilMs = Math.max(this.#revokedUntilMs, timestampMs(batch.revokedUntilTime));
    }
    this.#deps.revokeKeys(batch.revokedKeyIds);
    this.cursor = batch.cursor;
    const nowMs = this.#deps.monotonic();
    if (nowMs - this.#sweptAtMs >= SWEEP_INTERVAL_MS) this.#sweep(nowMs, toMs(batch.asOfTime));
  }

  /** Handles the failure of a stream or a poll. @returns the error for the log if no retry can fix it */
  protected noteFailure(error: unknown): ConnectError | undefined {
    const code = error instanceof ConnectError ? error.code : undefined;
    // The service does not know the cursor, so the feed begins again with a snapshot.
    if (code === Code.InvalidArgument) this.cursor = "";
    const fault = code && !isPageOfProxy(error as ConnectError) && FAULTS.get(code);
    return fault ? new ConnectError(fault, code, undefined, undefined, error) : undefined;
  }

  /** Drops entries that have expired by both clocks: the store's and this process's, which may differ. */
  #sweep(nowMs: number, asOfMs: number): void {
    this.#sweptAtMs = nowMs;
    const overMs = Math.min(asOfMs, this.#deps.clock());
    for (const [sid, expiresAtMs] of this.#expiries) if (expiresAtMs <= overMs) this.#expiries.delete(sid);
    for (const [sid, { expiresAtMs }] of this.#stale) if (expiresAtMs <= overMs) this.#stale.delete(sid);
  }
}

const JSON_PAGE = /^application\/(?:problem\+)?json/;

/**
 * Returns whether a refusal is the page of a proxy in front, which may know no route to the service while that is away. The service refuses
 * at the end of a stream, where an error has no content type, and never with `unimplemented`. Only its public API has a page, with a header
 * that proxies do not send with JSON.
 */
function isPageOfProxy({ code, metadata }: ConnectError): boolean {
  const type = metadata.get("content-type");
  if (type === null) return code === Code.Unimplemented;
  const isOfPublicApi = type === "application/json" && metadata.has("cross-origin-resource-policy");
  return !isOfPublicApi && (JSON_PAGE.test(type) || !type.startsWith("application/"));
}

/** Returns a time in ms since the epoch; Infinity if it is absent. */
const toMs = (time: Timestamp | undefined) => (time === undefined ? Number.POSITIVE_INFINITY : timestampMs(time));
