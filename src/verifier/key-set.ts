import { setTimeout as sleep } from "node:timers/promises";
import { importKey, type Key } from "./key.ts";
import type { Report } from "./report.ts";

/** How often an unknown `kid` may make us read the key set, ms. */
const COOLDOWN = 1000;
/** How often it is read when the answer does not say how long it holds, and at least, ms. */
const DEFAULT_AGE = 60_000;
const MAX_AGE = 300_000;
/** Keys that could not be read again for this long are no longer trusted, ms: one may have been withdrawn. */
const MAX_TRUST = 3_600_000;
const TIMEOUT = 5000;
const MAX_BYTES = 256 * 1024;
/** Enough for many rotations; more would be no key set of an issuer. */
const MAX_KEYS = 100;
/** How many spellings of our keys' headers are remembered. */
const MAX_HEADERS = 100;

export interface KeySet {
  find(kid: string): Key | undefined;
  /** Keys by header segments that a good signature has confirmed. */
  readonly headers: Map<string, Key>;
  isRevoked(kid: string): boolean;
  /** Emergency: tokens under these keys are refused from now on. */
  revoke(kids: readonly string[]): void;
  /** Whether the set was read lately enough. */
  trusted(now: number): boolean;
  /** For an unknown `kid`: reads again unless that was done a moment ago; whether the set is known as of then. */
  lookAgain(): Promise<boolean>;
  /** Resolves when the set has been read for the first time. */
  readonly ready: Promise<void>;
}

export type KeySetOptions = {
  readonly url: string;
  readonly fetch: typeof fetch;
  /** A clock that never jumps, ms. */
  readonly monotonic: () => number;
  readonly report: Report;
  readonly signal: AbortSignal;
};

/** Follows the JWKS at `url`: on a schedule, and on an unknown `kid`, at a bounded rate. */
export function followKeySet({ url, fetch, monotonic, report, signal }: KeySetOptions): KeySet {
  let keys = new Map<string, Key>();
  const headers = new Map<string, Key>();
  const revoked = new Set<string>();
  const ready = Promise.withResolvers<void>();
  let readAt = Number.NEGATIVE_INFINITY;
  let triedAt = Number.NEGATIVE_INFINITY;
  let succeeded = false;
  let reading: Promise<number> | undefined;

  const withdraw = (key: Key): void => {
    if (key.withdrawn) return;
    key.withdrawn = true;
    headers.clear();
  };

  const take = (found: readonly Key[]): void => {
    const next = new Map<string, Key>();
    for (const key of found) {
      const known = keys.get(key.kid);
      if (!next.has(key.kid)) next.set(key.kid, known?.material === key.material ? known : key);
    }
    for (const key of keys.values()) if (next.get(key.kid) !== key) withdraw(key);
    keys = next;
  };

  /** Reads the set; how long it holds, ms. Never throws: keys that we have stay until they can be read again. */
  const read = async (): Promise<number> => {
    triedAt = monotonic();
    try {
      const answer = await fetch(url, {
        redirect: "error",
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT)]),
      });
      take(await keysOf(answer));
      readAt = triedAt;
      if (!succeeded) report({ event: "keys_read", kids: [...keys.keys()] });
      succeeded = true;
      ready.resolve();
      return holdsFor(answer);
    } catch (error) {
      if (!signal.aborted && (succeeded || readAt === Number.NEGATIVE_INFINITY))
        report({ event: "keys_unreadable", error });
      succeeded = false;
      return COOLDOWN;
    }
  };

  /** One reading at a time, which all who want one share. */
  const readOnce = (): Promise<number> => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  };

  const follow = async (): Promise<void> => {
    while (!signal.aborted) {
      const pause = await readOnce();
      await sleep(pause, undefined, { ref: false, signal }).catch(() => {});
    }
  };
  void follow();

  return {
    find: (kid) => keys.get(kid),
    headers,
    isRevoked: (kid) => revoked.has(kid),
    revoke(kids) {
      for (const kid of kids) {
        if (revoked.has(kid)) continue;
        revoked.add(kid);
        const key = keys.get(kid);
        if (key !== undefined) withdraw(key);
      }
    },
    trusted: (now) => now - readAt <= MAX_TRUST,
    async lookAgain() {
      if (reading !== undefined || monotonic() - triedAt >= COOLDOWN) await readOnce();
      return succeeded;
    },
    ready: ready.promise,
  };
}

/** Remembers a header segment that a good signature has confirmed. */
export function rememberHeader(set: KeySet, segment: string, key: Key): void {
  if (set.headers.size >= MAX_HEADERS) set.headers.clear();
  set.headers.set(segment, key);
}

async function keysOf(answer: Response): Promise<Key[]> {
  if (!answer.ok) throw new Error(`the key set answers ${answer.status}`);
  const body: unknown = JSON.parse(await bounded(answer));
  const list = typeof body === "object" && body !== null && "keys" in body ? body.keys : undefined;
  if (!Array.isArray(list) || list.length > MAX_KEYS) throw new Error("not a key set");
  const keys = (await Promise.all(list.map(importKey))).filter((key) => key !== undefined);
  if (keys.length === 0) throw new Error("the key set has no key that signs access tokens");
  return keys;
}

/** The body of an answer, of which no more is read than a key set may have. */
async function bounded(answer: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of answer.body ?? []) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new Error("the key set is too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

/** RFC 9111 §5.2.2.1, within bounds. */
function holdsFor(answer: Response): number {
  const seconds = /(?:^|[\s,])max-age=(\d{1,9})/.exec(answer.headers.get("cache-control") ?? "")?.[1];
  const age = seconds === undefined ? DEFAULT_AGE : Number(seconds) * 1000;
  return Math.min(Math.max(age, COOLDOWN), MAX_AGE);
}
