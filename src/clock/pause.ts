/** Timers that do not keep a process running, in every runtime: they are global, and only some runtimes let them be released. */

/** Lets the process end while the timer waits. Timers of browsers are numbers, and keep nothing running. */
export function release<T>(timer: T): T {
  (timer as { readonly unref?: () => void }).unref?.();
  return timer;
}

/** Resolves after `ms` milliseconds, or when `signal` is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = release(setTimeout(end, ms));
    signal?.addEventListener("abort", end);
  });
}
