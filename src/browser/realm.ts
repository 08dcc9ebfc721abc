/**
 * The part of the browser's global object that the kit uses, as structural types, so that tests can replace it. Locks, channels and the
 * document may be missing, as in a sandboxed frame or on a server that renders pages. The kit then makes more requests, but works the same.
 */

export type ChannelLike = {
  onmessage: ((event: never) => void) | null;
  postMessage(message: unknown): void;
  close(): void;
};

/**
 * An event after which the page is active again. After `resume`, or with `persisted`, messages of other tabs may have been missed, because
 * the tab was frozen or in the back/forward cache.
 */
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
  /** The monotonic clock never steps, but may stand still while the device sleeps. */
  readonly performance: { now(): number };
  /** The wall clock counts the time in which the device sleeps, but may be wrong and may step. */
  readonly Date: { now(): number };
  readonly Math: { random(): number };
  readonly console?: { warn(...texts: readonly unknown[]): void };
  /** Whether the page has been loaded over https, or from this machine. */
  readonly isSecureContext?: boolean;
  readonly document?: { readonly visibilityState: string; readonly cookie: string };
  readonly location?: { readonly origin: string };
  readonly navigator?: {
    readonly locks?: {
      request<T>(name: string, options: { signal: AbortSignal }, callback: () => Promise<T>): Promise<T>;
    };
  };
  readonly BroadcastChannel?: new (name: string) => ChannelLike;
};

const warned: string[] = [];

/**
 * Writes a text to the console, once for a page: a fault of the configuration would otherwise look like a sign-out or an outage.
 * docs/tasks/browser.md#console explains the texts.
 */
export function warn(realm: Realm, text: string): void {
  if (warned.includes(text)) return;
  realm.console?.warn("session:", text);
  warned.push(text);
}

/** Returns a controller that is aborted after `delayMs`, with `parent`, or by the caller. After that no timer and no listener remains. */
export function deadline(realm: Realm, delayMs: number, parent: AbortSignal): AbortController {
  const over = new AbortController();
  const abort = () => over.abort();
  const timer = realm.setTimeout(abort, parent.aborted ? 0 : delayMs);
  // The controller `over` serves as the listener's options: its property `signal` removes the listener when `over` aborts.
  parent.addEventListener("abort", abort, over);
  over.signal.addEventListener("abort", () => realm.clearTimeout(timer as never));
  return over;
}

/** Resolves after `delayMs`, or when `signal` is aborted. */
export const sleep = (realm: Realm, delayMs: number, signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => deadline(realm, delayMs, signal).signal.addEventListener("abort", resolve));

/** Calls back at every event after which the page may be active again, until `signal` is aborted. */
export function onWake(realm: Realm, signal: AbortSignal, callback: (event: WakeEvent) => void): void {
  for (const type of ["visibilitychange", "resume", "pageshow", "online"]) {
    // The listeners capture events, because not all of these bubble from the document.
    realm.addEventListener?.(type, callback, { signal, capture: true });
  }
}

/**
 * Returns the value of the hint cookie, which names the session that the browser's cookies belong to; an empty text if there is none.
 * Returns undefined if the cookie is not used, cannot be read, or was also set by a sibling domain.
 */
export function hintOf({ document }: Realm, name: string | undefined): string | undefined {
  try {
    const [, value = "", other] = `; ${(document as NonNullable<Realm["document"]>).cookie}`.split(`; ${name}=`);
    if (name && !other) return value.split(";")[0];
  } catch {
    // In a sandboxed frame and in a worker, `document.cookie` cannot be read.
  }
  return undefined;
}
