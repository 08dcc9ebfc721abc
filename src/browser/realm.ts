/**
 * All that the kit uses of a browser: the global object, by shape, so that tests can bring their own. Locks, channels and the
 * document may be missing (a sandboxed frame, a server that renders): the kit then makes more requests, and no more changes.
 */

export type ChannelLike = {
  onmessage: ((event: never) => void) | null;
  postMessage(message: unknown): void;
  close(): void;
};

/** `resume`, or `persisted`: messages may have been missed (frozen tab, back/forward cache). */
export type WakeEvent = { readonly type: string; readonly persisted?: boolean };
type Target = {
  addEventListener(
    type: string,
    listener: (event: WakeEvent) => void,
    options: { signal: AbortSignal; capture: true },
  ): void;
};

export type Realm = Partial<Target> & {
  fetch(url: string | Request, init?: RequestInit): Promise<Response>;
  setTimeout(callback: () => void, delayMs: number): unknown;
  clearTimeout(timer: never): void;
  /** Never steps; may stand still while the device sleeps. */
  readonly performance: { now(): number };
  /** Counts sleep; may be wrong and may step. */
  readonly Date: { now(): number };
  readonly Math: { random(): number };
  readonly document?: { readonly visibilityState: string; readonly cookie: string };
  readonly location?: { readonly origin: string };
  readonly navigator?: {
    readonly locks?: {
      request<T>(name: string, options: { signal: AbortSignal }, callback: () => Promise<T>): Promise<T>;
    };
  };
  readonly BroadcastChannel?: new (name: string) => ChannelLike;
};

/** Resolves after so long, or when `signal` is aborted. */
export function sleep(realm: Realm, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const stop = () => {
      realm.clearTimeout(timer as never);
      resolve();
    };
    const timer = realm.setTimeout(stop, delayMs);
    signal.addEventListener("abort", stop);
    if (signal.aborted) stop();
  });
}

/** Rejects when `signal` is aborted: a caller that gives up does not wait on. */
export const abortable = <T>(signal: AbortSignal, promise: Promise<T>): Promise<T> =>
  Promise.race([
    promise,
    new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
  ]);

/** Aborts after `delayMs`, with `parent`, or when the caller aborts it; leaves no timer behind then. */
export function deadline(realm: Realm, delayMs: number, parent: AbortSignal): AbortController {
  const over = new AbortController();
  sleep(realm, delayMs, AbortSignal.any([parent, over.signal])).then(() => over.abort());
  return over;
}

/** Calls back at whatever may be a wake until `signal` is aborted. */
export function onWake(realm: Realm, signal: AbortSignal, callback: (event: WakeEvent) => void): void {
  for (const type of ["visibilitychange", "resume", "pageshow", "online"]) {
    // Captured: not all of them bubble from the document.
    realm.addEventListener?.(type, callback, { signal, capture: true });
  }
}
