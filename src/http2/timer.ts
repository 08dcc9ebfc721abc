/** The longest delay of a timer, ms. */
const MAX_DELAY_MS = 2 ** 31 - 1;

export type StopTimer = () => void;

/**
 * Calls `action` after a delay unless it is stopped; never where the delay is longer than 24 days. The timer of a process that
 * stood still fires before what has arrived meanwhile is read, so what has arrived is read first. The process may end before.
 */
export function startTimer(action: () => void, delayMs: number): StopTimer {
  if (delayMs > MAX_DELAY_MS) return () => {};
  let pending: NodeJS.Immediate | undefined;
  const timer = setTimeout(() => {
    pending = setImmediate(action);
  }, delayMs).unref();
  return () => {
    clearTimeout(timer);
    clearImmediate(pending);
  };
}
