/**
 * All that the kit uses of a browser: the global object, by shape, so that tests can bring their own. Locks, channels and the
 * document may be missing (a sandboxed frame, a server that renders): the kit then makes more requests, and no more changes.
 */

export type ChannelLike = {
  onmessage: ((event: { readonly data: unknown }) => void) | null;
  postMessage(message: unknown): void;
  close(): void;
};

/** `resume`, or `persisted`: messages may have been missed (frozen tab, back/forward cache). */
export type WakeEvent = { readonly type: string; readonly persisted?: boolean };
type Target = {
  addEventListener(type: string, listener: (event: WakeEvent) => void, options: { signal: AbortSignal }): void;
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
  readonly document?: Target & { readonly visibilityState: string; readonly cookie: string };
  readonly location?: { readonly origin: string };
  readonly navigator?: {
    readonly locks?: {
      request(name: string, options: { signal: AbortSignal }, callback: () => Promise<void>): Promise<void>;
    };
  };
  readonly BroadcastChannel?: new (name: string) => ChannelLike;
};

/** Resolves after so long, or when `signal` is aborted. */
export function sleep(realm: Realm, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const stop = () => {
      realm.clearTimeout(timer as never);
      signal.removeEventListener("abort", stop);
      resolve();
    };
    const timer = realm.setTimeout(stop, delayMs);
    signal.addEventListener("abort", stop);
    if (signal.aborted) stop();
  });
}

export const isVisible = ({ document }: Realm): boolean => document?.visibilityState === "visible";

/** Calls back at whatever may be a wake until `signal` is aborted. */
export function onWake(realm: Realm, signal: AbortSignal, callback: (event: WakeEvent) => void): void {
  for (const type of ["visibilitychange", "resume"]) realm.document?.addEventListener(type, callback, { signal });
  for (const type of ["pageshow", "online"]) realm.addEventListener?.(type, callback, { signal });
}
