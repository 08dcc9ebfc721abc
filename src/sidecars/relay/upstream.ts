/**
 * Presents the feed of an upstream as a revocation log, from which this relay's own feed reads. A reading returns what the upstream has
 * delivered, with the upstream's time. While the upstream is silent, nothing is read and no heartbeat is sent.
 */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import type {
  Revocation as RevocationMessage,
  SessionAdminService,
  WatchRevocationsResponse,
} from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import type { EndReason, Revocation, SessionId } from "../../session/model.ts";
import { type RevocationBatch, type SessionStore, StoreUnavailable } from "../../session/ports.ts";
import { latest, type StoreMs, storeMs } from "../../session/time.ts";
import { Freshness } from "../../verifier/freshness.ts";
import type { Report } from "../../verifier/report.ts";
import { type Onward, Revocations } from "../../verifier/revocations.ts";

/** The latest time that a Timestamp can have, in ms: an entry without `expire_time` is kept indefinitely. */
const NEVER = storeMs(253_402_300_799_999);

/**
 * A stream is replaced if its last complete batch is delayed by more than this, in ms: batches that are older than 2 s are not passed on as
 * complete, and the next one comes after half a second. A clock that was set, or drifts, delays all later batches of a stream.
 */
const MAX_DELAY_MS = 1_500;

type Deps = {
  readonly client: Pick<Client<typeof SessionAdminService>, "watchRevocations">;
  readonly report: Report;
  readonly signal: AbortSignal;
  /** The wall clock, in ms since the epoch. */
  readonly clock: () => number;
  readonly monotonic: () => number;
};

export class Upstream implements Pick<SessionStore, "revocations" | "onRevocation"> {
  /** Rejects when the admin token is refused or lacks the scope. */
  readonly ready: Promise<void>;
  readonly #deps: Deps;
  readonly #freshness = new Freshness();
  #news = Promise.withResolvers<void>();
  #unread: Revocation[] = [];
  #keyIds: readonly string[] = [];
  /** The list of revoked keys at the last reading. */
  #readKeyIds: readonly string[] = this.#keyIds;
  #revokedUntil = storeMs(0);
  #asOf = storeMs(0);
  #firstAsOf = storeMs(0);
  #isComplete = false;
  #lost: { readonly cause: unknown } | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    const onward: Onward = {
      onBatch: (batch, isFirst) => this.#take(batch, isFirst),
      onLost: (error) => this.#lose(error),
    };
    deps.signal.addEventListener("abort", () => this.#lose(deps.signal.reason));
    const revokeKeys = (kids: readonly string[]) => this.#addKeys(kids);
    this.ready = new Revocations({ ...deps, onward, revokeKeys, maxDelayMs: MAX_DELAY_MS }).ready;
  }

  /** All keys that were revoked in an emergency. The list is replaced, never changed. */
  get revokedKeyIds(): readonly string[] {
    return this.#keyIds;
  }

  /** Returns the age of the upstream's data, in ms; Infinity if the age cannot be known. */
  ageMs(): number {
    return this.#freshness.ageMs(this.#deps.monotonic(), this.#deps.clock());
  }

  /** Never calls the listener, because `revocations` itself waits until there is something to read. */
  onRevocation(): () => void {
    return () => {};
  }

  /**
   * Waits for data that the upstream delivers after the last reading, and returns it. There is only one reader, so no cursor is needed.
   * @throws StoreUnavailable when the stream is lost
   */
  async revocations(): Promise<RevocationBatch> {
    await this.#news.promise;
    this.#news = Promise.withResolvers();
    if (this.#lost !== undefined) throw new StoreUnavailable("the upstream's feed is lost", this.#lost);
    const revocations = this.#unread;
    this.#unread = [];
    return {
      ...{ revocations, revokedUntil: this.#revokedUntil, cursor: "" },
      ...{ now: this.#asOf, isComplete: this.#isComplete },
    };
  }

  #take(batch: WatchRevocationsResponse, isFirst: boolean): void {
    const { monotonic, clock } = this.#deps;
    const asOf = batch.asOfTime === undefined ? undefined : storeMs(timestampMs(batch.asOfTime));
    if (isFirst) {
      this.#freshness.restart();
      this.#firstAsOf = asOf ?? storeMs(0);
    }
    // The first batch of a stream may be two seconds old already, and nothing shows its age. If relays marked such a batch as complete,
    // each level of a tree would add two seconds. From the next batch on, the age is known.
    const isVouchedFor = batch.caughtUp && asOf !== undefined && asOf > this.#firstAsOf;
    this.#freshness.record(asOf, isVouchedFor, monotonic(), clock());
    const isNews = this.#hasNews(batch, asOf, isFirst);
    for (const entry of batch.revocations) this.#unread.push(revocationOf(entry, asOf ?? this.#asOf));
    if (batch.revokedUntilTime !== undefined) {
      this.#revokedUntil = latest(this.#revokedUntil, storeMs(timestampMs(batch.revokedUntilTime)));
    }
    this.#isComplete = isCompleteAt(batch, asOf);
    this.#lost = undefined;
    if (!isNews) return;
    this.#asOf = asOf ?? this.#asOf;
    this.#readKeyIds = this.#keyIds;
    this.#news.resolve();
  }

  /**
   * Returns whether a batch contains something that this relay has not passed on. A batch whose time does not advance comes from a relay
   * that follows this one. If it were passed on, it would circulate between the two endlessly, and the stream would never fall silent.
   */
  #hasNews(batch: WatchRevocationsResponse, asOf: StoreMs | undefined, isFirst: boolean): boolean {
    const { revocations, revokedUntilTime } = batch;
    if (isFirst || asOf === undefined || asOf > this.#asOf || revocations.length > 0) return true;
    if (this.#keyIds !== this.#readKeyIds || isCompleteAt(batch, asOf) !== this.#isComplete) return true;
    return revokedUntilTime !== undefined && timestampMs(revokedUntilTime) > this.#revokedUntil;
  }

  #lose(cause: unknown): void {
    this.#lost = { cause };
    this.#news.resolve();
  }

  #addKeys(kids: readonly string[]): void {
    const unknown = kids.filter((kid) => !this.#keyIds.includes(kid));
    if (unknown.length > 0) this.#keyIds = [...this.#keyIds, ...unknown];
  }
}

const isCompleteAt = ({ caughtUp }: WatchRevocationsResponse, asOf: StoreMs | undefined) =>
  caughtUp && asOf !== undefined;

/** Session and reason are passed on unchanged, because a later version of the service may have other forms of them. */
function revocationOf({ sessionId, revokeTime, expireTime, reason }: RevocationMessage, asOf: StoreMs): Revocation {
  return {
    sid: sessionId as SessionId,
    revokedAt: revokeTime === undefined ? asOf : storeMs(timestampMs(revokeTime)),
    expiresAt: expireTime === undefined ? NEVER : storeMs(timestampMs(expireTime)),
    reason: reason as EndReason,
  };
}
