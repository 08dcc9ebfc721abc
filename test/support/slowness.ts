/** Measures how slow this machine is at the moment. Time limits are stated for an idle machine, and multiplied by this factor. */

/**
 * The CPU time of the measurement, in ms. It is longer than a time slice of the scheduler, so that waits for the processor are included.
 */
const PROBE_MS = 30;

/** Returns the ratio of elapsed time to CPU time, at least 1. */
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
 * Returns how long `work` would take on an idle machine, in ms. Its waits of `waitMs`, such as a timeout, are subtracted first, because
 * they take as long on every machine.
 */
export async function quietMs(waitMs: number, work: () => Promise<unknown>): Promise<number> {
  const before = slowness();
  const begunMs = performance.now();
  await work();
  const tookMs = performance.now() - begunMs;
  return Math.max(0, tookMs - waitMs) / Math.max(before, slowness());
}
