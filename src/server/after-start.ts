/** What is done once the service is ready, so that the start need not wait for it. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** How long the service must have had next to nothing to do, ms, and what that means: a share of the event loop's time. */
const REST_MS = 1_000;
const REST_UTILIZATION = 0.05;
/** How often rest is awaited. A service that is busy from its start on gives the memory back by itself, some day. */
const ATTEMPTS = 30;

export function afterStart(): void {
  let attempts = 0;
  let before = performance.eventLoopUtilization();
  const timer = setInterval(() => {
    const { utilization } = performance.eventLoopUtilization(before);
    before = performance.eventLoopUtilization();
    const isAtRest = utilization < REST_UTILIZATION;
    if (isAtRest) releaseMemory();
    if (isAtRest || ++attempts === ATTEMPTS) clearInterval(timer);
  }, REST_MS).unref();
}

/**
 * Returns to the system what only the start needed: some 30 MB of 120, which V8 would keep for as long as there is no need
 * of memory. Holds up the event loop for some 30 ms.
 */
function releaseMemory(): void {
  setFlagsFromString("--expose-gc");
  const collect: NodeJS.GCFunction = runInNewContext("gc");
  setFlagsFromString("--no-expose-gc");
  collect({ type: "major", execution: "sync", flavor: "last-resort" });
}
