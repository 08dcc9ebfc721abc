/**
 * Describes all that the kit uses of a browser: the global object, by shape, so that tests can bring their own. Locks, channels and the
 * document may be missing, as in a sandboxed frame or on a server that renders. The kit then makes more requests, and works the same.
 */

export type ChannelLike = {
  onmessage: ((event: never) => void) | null;
  postMessage(message: unknown): void;
  close(): void;
};

/** The event `resume`, or `persisted`, shows that messages may have been missed (frozen tab, back/forward cache). */
type WakeEvent = { readonly type: string; readonly persisted?: boolean };
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

/** Rejects when `signal` is aborted, so that a caller that gives up stops waiting. */
export const abortable = <T>(signal: AbortSignal, promise: Promise<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    promise.then(resolve, reject);
    signal.addEventListener("abort", () => reject(signal.reason));
  });

/** Aborts after `delayMs`, with `parent`, or when the caller aborts it. Afterwards neither a timer nor a listener is left. */
export function deadline(realm: Realm, delayMs: number, parent: AbortSignal): AbortController {
  const over = new AbortController();
  const abort = () => over.abort();
  const timer = realm.setTimeout(abort, parent.aborted ? 0 : delayMs);
  // The options read `signal` of the controller, so the listener is removed when `over` aborts.
  parent.addEventListener("abort", abort, over);
  over.signal.addEventListener("abort", () => realm.clearTimeout(timer as never));
  return over;
}

/** Resolves after `delayMs`, or when `signal` is aborted. */
export const sleep = (realm: Realm, delayMs: number, signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => deadline(realm, delayMs, signal).signal.addEventListener("abort", resolve));

/** Calls back at every event that may be a wake-up, until `signal` is aborted. */
export function onWake(realm: Realm, signal: AbortSignal, callback: (event: WakeEvent) => void): void {
  for (const type of ["visibilitychange", "resume", "pageshow", "online"]) {
    // The listeners capture, because not all of these events bubble from the document.
    realm.addEventListener?.(type, callback, { signal, capture: true });
  }
}
