/** Measures how slow this machine is now. Limits of durations are stated for an idle machine, and multiplied by this factor. */

/** The processor time, in ms, with which the speed is measured: more than a process gets in one slice of the scheduler. */
const PROBE_MS = 30;

/** Returns how many times longer work takes than the processor time that it needs, at least 1. */
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
 * Returns how long `work` would take on an idle machine, in ms, without its waits of `waitMs`, such as a timeout, which take as long on
 * every machine.
 */
export async function quietMs(waitMs: number, work: () => Promise<unknown>): Promise<number> {
  const before = slowness();
  const begunMs = performance.now();
  await work();
  const tookMs = performance.now() - begunMs;
  return Math.max(0, tookMs - waitMs) / Math.max(before, slowness());
}
