/** How slow this machine is now. Limits of durations are stated for a quiet one, and grow with it. */

/** Processor time that shows how much of a processor a process gets, ms: more than the scheduler lets pass at once. */
const PROBE_MS = 30;

/** How many times longer work takes than the processor time that it needs, at least 1. */
export function slowness(): number {
  const begunMs = performance.now();
  const begun = process.cpuUsage();
  for (;;) {
    const { user, system } = process.cpuUsage(begun);
    const workedMs = (user + system) / 1000;
    if (workedMs >= PROBE_MS) return Math.max(1, (performance.now() - begunMs) / workedMs);
  }
}

/**
 * How long `work` would take on a quiet machine, ms, beside its waits for something that takes `waitMs` anywhere, such as a timeout.
 */
export async function quietMs(waitMs: number, work: () => Promise<unknown>): Promise<number> {
  const before = slowness();
  const begunMs = performance.now();
  await work();
  const tookMs = performance.now() - begunMs;
  return Math.max(0, tookMs - waitMs) / Math.max(before, slowness());
}
