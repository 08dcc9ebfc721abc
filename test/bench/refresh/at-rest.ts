/** Measures the service before its first call: how soon it is ready, and its memory. */
import { setTimeout as sleep } from "node:timers/promises";
import { median } from "../../support/median.ts";
import { residentMemory } from "./proc.ts";
import { startService, type World } from "./service.ts";

const STARTS = 5;
/** How long a process is left without calls before it counts as at rest, in ms. */
const SETTLE = 1_500;

export type AtRest = {
  /** The median time from the start of a process to its ready line, in ms. */
  readonly startToReady: number;
  /** Resident memory, MiB. */
  readonly memory: number | undefined;
};

export async function measureAtRest(world: World): Promise<AtRest> {
  const times: number[] = [];
  let memory: number | undefined;
  for (let round = 1; round <= STARTS; round++) {
    const begin = performance.now();
    const service = await startService(world, {}, "anywhere");
    times.push(performance.now() - begin);
    if (round === STARTS) {
      await sleep(SETTLE);
      memory = residentMemory(service.pid);
    }
    await service.stop();
  }
  return { startToReady: median(times), memory };
}
