import type { SessionStore } from "../../session/ports.ts";

/** What no hint announces, such as expiry or an event for another instance, is looked for so often. */
const LOOK_MS = 1_000;
/** Signals that follow at once are returned together. */
const GATHER_MS = 20;

/** Resolves when there may be something to return, at the latest after `leftMs`, or when it must not wait any more. */
export async function waitForSignals(
  store: Pick<SessionStore, "onRevocation">,
  leftMs: number,
  stopped: AbortSignal,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = () => resolve();
  const look = setTimeout(end, Math.min(LOOK_MS, leftMs));
  let gather: NodeJS.Timeout | undefined;
  const stopHints = store.onRevocation(() => {
    gather ??= setTimeout(end, GATHER_MS);
  });
  stopped.addEventListener("abort", end);
  if (stopped.aborted) end();
  await promise;
  stopHints();
  stopped.removeEventListener("abort", end);
  clearTimeout(look);
  clearTimeout(gather);
}
