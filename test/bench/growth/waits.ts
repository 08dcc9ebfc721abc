import { setImmediate } from "node:timers/promises";

/** Repeats `ask` while `what` runs. @returns the duration of `what`, and that of each `ask`, in ms */
export async function waitsOfOthers(ask: () => Promise<unknown>, what: () => Promise<unknown>) {
  const waits: number[] = [];
  let isDone = false;
  const asking = (async () => {
    while (!isDone) {
      const startedAt = performance.now();
      await setImmediate(); // A store in this process blocks the event loop, so each call begins in a new turn of the loop.
      await ask();
      waits.push(performance.now() - startedAt);
    }
  })();
  const startedAt = performance.now();
  await what();
  const tookMs = performance.now() - startedAt;
  isDone = true;
  await asking;
  waits.sort((a, b) => a - b);
  const at = (share: number) => (waits[Math.floor(share * (waits.length - 1))] ?? Number.NaN).toFixed(1);
  return { text: `${tookMs.toFixed(0)} ms; others wait p50 ${at(0.5)}, p99 ${at(0.99)}, longest ${at(1)} ms` };
}
