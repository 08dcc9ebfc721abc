import { pause } from "../../platform/clock/pause.ts";
import { limitCall } from "../closing.ts";
import { type OneAtATime, shareByPolling, shareByPromise } from "../one-at-a-time.ts";
import type { Report } from "../refusals/report.ts";
import type { ImportKey, PublishedKey } from "./jwk.ts";
import { MIN_MAX_AGE_MS, readKeys, readMaxAgeMs } from "./jwks.ts";

/** The shortest time between two reads that are caused by unknown `kid`s, in ms. */
const COOLDOWN_MS = MIN_MAX_AGE_MS;
/** After this time without a successful read, in ms, the keys are no longer trusted, because a key may have been withdrawn. */
const MAX_UNREAD_MS = 3_600_000;
const TIMEOUT_MS = 5000;
/** How many header segments are remembered. The tokens of one issuer have few different header segments. */
const MAX_HEADERS = 100;

export type KeySetDeps = {
  readonly url: string;
  readonly fetch: typeof fetch;
  readonly monotonic: () => number;
  readonly report: Report;
  /** Is aborted when the verifier is closed. A verifier that polls has none. */
  readonly signal: AbortSignal | undefined;
  /** Whether the set is read only when a token needs it, instead of on a schedule. */
  readonly isOnDemand?: boolean;
};

/** Keeps the JWKS at `url` up to date: reads it on a schedule, and at a limited rate when the `kid` of a token is unknown. */
export class KeySet<Key extends PublishedKey> {
  /** Resolves when the key set has been read for the first time. */
  readonly ready: Promise<void>;
  /** Maps the header segments of tokens to keys. A segment is added after a token with this header had a valid signature. */
  readonly headers = new Map<string, Key>();
  readonly #deps: KeySetDeps;
  readonly #importKey: ImportKey<Key>;
  readonly #setReady = Promise.withResolvers<void>();
  readonly #revokedKids = new Set<string>();
  #keys = new Map<string, Key>();
  #readAtMs = Number.NEGATIVE_INFINITY;
  #triedAtMs = Number.NEGATIVE_INFINITY;
  /** Whether the last read succeeded; undefined until the first read has ended. */
  #readable: boolean | undefined;
  #useForMs = 0;
  readonly #oneAtATime: OneAtATime;

  constructor(deps: KeySetDeps, importKey: ImportKey<Key>) {
    this.#deps = deps;
    this.#importKey = importKey;
    this.ready = this.#setReady.promise;
    this.#oneAtATime = deps.isOnDemand ? shareByPolling() : shareByPromise();
    if (!deps.isOnDemand) void this.#follow();
  }

  get kids(): readonly string[] {
    return [...this.#keys.keys()];
  }

  find(kid: string): Key | undefined {
    return this.#keys.get(kid);
  }

  isRevoked(kid: string): boolean {
    return this.#revokedKids.has(kid);
  }

  /** Rejects tokens that were signed with these keys, from now on. This is for emergencies. */
  revoke(kids: readonly string[]): void {
    for (const kid of kids) {
      this.#revokedKids.add(kid);
      const key = this.#keys.get(kid);
      if (key !== undefined) this.#withdraw(key);
    }
  }

  /** Returns whether the set was read within the last hour. @param nowMs the time by the monotonic clock */
  isTrusted(nowMs: number): boolean {
    return nowMs - this.#readAtMs <= MAX_UNREAD_MS;
  }

  /** Returns the ids of the keys that verify tokens. @param nowMs the time by the monotonic clock */
  verifyingKids(nowMs: number): readonly string[] {
    return this.isTrusted(nowMs) ? this.kids.filter((kid) => !this.isRevoked(kid)) : [];
  }

  /** Returns whether the set must be read. @param nowMs the time by the monotonic clock */
  isDue(nowMs: number): boolean {
    return nowMs - this.#triedAtMs >= this.#useForMs;
  }

  /** Reads the set. Concurrent callers share one read. It never rejects: known keys stay until the set is readable again. */
  read(): Promise<void> {
    return this.#oneAtATime.run(() => this.#read());
  }

  /** Reads the set again because of an unknown `kid`, at most once a second. Returns whether the set is readable. */
  async refresh(): Promise<boolean> {
    const isDue = this.#deps.monotonic() - this.#triedAtMs >= COOLDOWN_MS;
    if (isDue || this.#oneAtATime.isUnderWay()) await this.read();
    return this.#readable === true;
  }

  /** Remembers the key of a header segment. It is called after a token with this header had a valid signature. */
  rememberHeader(segment: string, key: Key): void {
    if (this.headers.size >= MAX_HEADERS) this.headers.clear();
    this.headers.set(segment, key);
  }

  async #follow(): Promise<void> {
    const { signal } = this.#deps;
    while (!signal?.aborted) {
      await this.read();
      await pause(this.#useForMs, signal);
    }
  }

  async #read(): Promise<void> {
    const { url, fetch, monotonic, report, signal } = this.#deps;
    this.#triedAtMs = monotonic();
    const call = limitCall(signal, TIMEOUT_MS, "the key set did not come");
    try {
      const response = await fetch(url, { redirect: "manual", signal: call.signal });
      this.#replace(await readKeys(response, this.#importKey));
      this.#readAtMs = this.#triedAtMs;
      if (!this.#readable) report({ event: "keys_read", kids: this.kids });
      this.#readable = true;
      this.#setReady.resolve();
      this.#useForMs = readMaxAgeMs(response);
    } catch (error) {
      if (this.#readable !== false) report({ event: "keys_unreadable", error });
      this.#readable = false;
      this.#useForMs = COOLDOWN_MS;
    } finally {
      call.end();
    }
  }

  #replace(found: readonly Key[]): void {
    const next = new Map<string, Key>();
    for (const key of found) {
      const known = this.#keys.get(key.kid);
      if (!next.has(key.kid)) next.set(key.kid, known?.material === key.material ? known : key);
    }
    for (const key of this.#keys.values()) if (next.get(key.kid) !== key) this.#withdraw(key);
    this.#keys = next;
  }

  #withdraw(key: Key): void {
    if (key.withdrawn) return;
    key.withdrawn = true;
    this.headers.clear();
  }
}
