import { limitCall } from "./closing.ts";
import type { PublishedKey } from "./jwk.ts";
import { readText } from "./jwks.ts";
import type { KeySet } from "./key-set.ts";
import { type OneAtATime, shareWork, takeTurns } from "./one-at-a-time.ts";
import { RecentlyUsed } from "./recently-used.ts";
import type { Report } from "./report.ts";
import { readStatusList, type StatusList, statusAt } from "./status-list.ts";
import type { Claims } from "./verdict.ts";

const TYPE = "application/statuslist+jwt";
/** How many lists are kept. A list takes 128 KiB if one of its sessions has ended; all other lists share their memory. */
const MAX_LISTS = 2_000;
/** The largest accepted size of a list in bytes, as it is sent: base64url of at most 1 MiB. */
const MAX_BYTES = 1_400_000;
/** How long to wait before a list that could not be read is read again, in ms. */
const COOLDOWN_MS = 1000;
const TIMEOUT_MS = 5000;

type Deps = {
  readonly keys: Pick<KeySet<PublishedKey>, "find" | "isRevoked" | "refresh">;
  readonly issuer: string;
  readonly fetch: typeof fetch;
  /** The longest time after which a list is read again, in ms; the list itself may specify a shorter time. */
  readonly pollIntervalMs: number | undefined;
  readonly maxStalenessMs: number;
  /** The wall clock, in ms since the epoch. */
  readonly clock: () => number;
  readonly monotonic: () => number;
  readonly report: Report;
  readonly signal: AbortSignal | undefined;
};

/** What is known about a list: its last version, if it could be read, and the times of requests for it. */
type Kept = {
  readonly oneAtATime: OneAtATime;
  list: StatusList | undefined;
  etag: string | undefined;
  /** When the last successful request for the list was sent, by the monotonic clock. */
  confirmedAtMs: number;
  /** When the last request for the list ended, or was sent if it is still under way, by the monotonic clock. */
  triedAtMs: number;
  /**
   * Whether the last request for the list failed. In that case a token waits for the next request only if the kept list cannot decide about
   * it.
   */
  hasFailed: boolean;
};

/**
 * Finds ended sessions by the status lists that access tokens refer to. A list is read when a token needs it and its `ttl` is over.
 * Only tokens with a valid signature get here, so forged tokens cannot cause lists to be read.
 */
export class ListedRevocations {
  readonly #deps: Deps;
  readonly #origin: string;
  readonly #lists = new RecentlyUsed<Kept>(MAX_LISTS);
  /**
   * The list of each token that is being verified now. It is held here because the cache may drop the list before the verification ends.
   */
  readonly #awaited = new WeakMap<Claims, Kept>();
  #last: StatusList | undefined;
  /** Whether the last read of a list succeeded; undefined until the first read has ended. */
  #readable: boolean | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#origin = new URL(deps.issuer).origin;
  }

  /**
   * Reads the list of a token if the list is due to be read again, or waits for a read under way. Returns undefined if there is nothing to
   * wait for. It never rejects.
   */
  read(claims: Claims): Promise<void> | undefined {
    const place = placeOf(claims);
    const kept = place && (this.#lists.get(place.uri) ?? this.#begin(place.uri));
    if (place === undefined || kept === undefined) return undefined;
    if (!this.#isDue(kept) && !kept.oneAtATime.isUnderWay()) return undefined;
    const reading = kept.oneAtATime.run(() => this.#read(place.uri, kept));
    if (kept.hasFailed && this.statusOf(claims) !== "unknown") return undefined;
    this.#awaited.set(claims, kept);
    return reading;
  }

  /** Returns the known status of a token's session. */
  statusOf(claims: Claims): "valid" | "revoked" | "unknown" {
    const place = placeOf(claims);
    const list = place && (this.#awaited.get(claims) ?? this.#lists.get(place.uri))?.list;
    this.#awaited.delete(claims);
    if (place === undefined || list === undefined || list.key.withdrawn) return "unknown";
    const status = statusAt(list.statuses, place.index);
    // Even an old list is right about a session that has ended, because such a session never becomes valid again.
    if (status !== undefined && status !== 0) return "revoked";
    const { maxStalenessMs, clock } = this.#deps;
    const isFresh = clock() < list.expiresAtMs && this.#ageMs(list) <= maxStalenessMs;
    return status === 0 && isFresh ? "valid" : "unknown";
  }

  /** Returns the age of the list that was read last, in ms; Infinity before any list was read. */
  stalenessMs(): number {
    return this.#last === undefined ? Number.POSITIVE_INFINITY : this.#ageMs(this.#last);
  }

  #ageMs({ issuedAtMs }: StatusList): number {
    return Math.max(0, this.#deps.clock() - issuedAtMs);
  }

  /**
   * Adds an entry for a list that has not been read yet. Returns undefined, and adds nothing, if the URL of the list has another origin
   * than the issuer.
   */
  #begin(uri: string): Kept | undefined {
    if (URL.parse(uri)?.origin !== this.#origin) return undefined;
    const never = Number.NEGATIVE_INFINITY;
    const oneAtATime = this.#deps.pollIntervalMs === undefined ? shareWork() : takeTurns();
    const times = { confirmedAtMs: never, triedAtMs: never };
    const kept = { oneAtATime, list: undefined, etag: undefined, ...times, hasFailed: false };
    this.#lists.set(uri, kept);
    return kept;
  }

  #isDue({ list, confirmedAtMs, triedAtMs }: Kept): boolean {
    const { pollIntervalMs = Number.POSITIVE_INFINITY, monotonic } = this.#deps;
    const nowMs = monotonic();
    if (list === undefined || list.key.withdrawn) return nowMs - triedAtMs >= COOLDOWN_MS;
    const intervalMs = Math.min(list.ttlMs, pollIntervalMs);
    const isOver = nowMs - confirmedAtMs >= intervalMs || this.#ageMs(list) >= list.ttlMs;
    return isOver && nowMs - triedAtMs >= Math.min(intervalMs, COOLDOWN_MS);
  }

  async #read(uri: string, kept: Kept): Promise<void> {
    const { monotonic, report, signal } = this.#deps;
    const startedAtMs = monotonic();
    const call = limitCall(signal, TIMEOUT_MS, "the status list did not come");
    kept.triedAtMs = startedAtMs;
    try {
      await this.#fetch(uri, kept, call.signal);
      kept.confirmedAtMs = startedAtMs;
      kept.hasFailed = false;
      this.#last = kept.list;
      if (!this.#readable) report({ event: "status_lists_read" });
      this.#readable = true;
    } catch (error) {
      kept.hasFailed = true;
      if (this.#readable !== false) report({ event: "status_lists_unreadable", error });
      this.#readable = false;
    } finally {
      kept.triedAtMs = monotonic();
      call.end();
    }
  }

  async #fetch(uri: string, kept: Kept, signal: AbortSignal): Promise<void> {
    const { fetch, keys, issuer, clock } = this.#deps;
    const isKnown = kept.list !== undefined && !kept.list.key.withdrawn && kept.etag !== undefined;
    const headers = { accept: TYPE, ...(isKnown && { "if-none-match": kept.etag }) };
    const response = await fetch(uri, { redirect: "manual", headers: headers as Record<string, string>, signal });
    if (isKnown && response.status === 304) return;
    if (!response.ok) throw new Error(`the status list responds ${response.status}`);
    const token = await readText(response, MAX_BYTES, "the status list");
    kept.list = await readStatusList(token, { keys, issuer, uri, nowMs: clock() });
    kept.etag = response.headers.get("etag") ?? undefined;
  }
}

type Place = { readonly index: number; readonly uri: string };

/** Returns the list and the index of a token's status (draft-ietf-oauth-status-list section 6.2); undefined if the token has none. */
function placeOf({ status }: Claims): Place | undefined {
  const list = (status as { readonly status_list?: unknown } | null | undefined)?.status_list;
  const { idx, uri } = (list ?? {}) as Readonly<Record<string, unknown>>;
  return Number.isSafeInteger(idx) && (idx as number) >= 0 && typeof uri === "string"
    ? { index: idx as number, uri }
    : undefined;
}
