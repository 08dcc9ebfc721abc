/** Timers that do not keep a process running. They work in every runtime, although only some runtimes have a method for this. */

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
