/** Keeps small the memory of a process that starts once and then serves for long. */
import { flushCompileCache } from "node:module";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** The code of a start runs once. Optimizing it takes processor time, and memory for the compiler. */
export const START_FLAG = "--no-turbofan";
/** How long after the start its garbage is collected, in ms. Before, V8 would keep the memory for the next allocations. */
const SETTLED_MS = 10_000;
/** The share of its time that an idle process works. A busier one collects its garbage without this. */
const IDLE_UTILIZATION = 0.1;
/** How often a process that was idle so far checks whether it is busy, in ms. */
const CHECK_INTERVAL_MS = 250;
/** The share of a processor that timers, probes and a few requests may use. */
const IDLE_SHARE = 0.03;
/** How much more than that share an idle process may use at once, in ms, such as for a garbage collection. */
const MAX_EXCESS_MS = 100;

/** Sets a flag of V8. Those that were given to Node take precedence. */
export function setFlag(flag: string): void {
  const [name = ""] = flag.replace(/^--(no-)?/, "").split("=");
  if (!process.execArgv.some((given) => given.replaceAll("_", "-").includes(name))) setFlagsFromString(flag);
}

/** Runs the start of a process, and returns its memory to the system some seconds later. */
export async function startLean(start: () => Promise<void>): Promise<void> {
  setFlag(START_FLAG);
  await start();
  optimizeWhenBusy();
  const started = performance.eventLoopUtilization();
  const collectWhenIdle = () => {
    if (performance.eventLoopUtilization(started).utilization < IDLE_UTILIZATION) collectGarbage();
  };
  setTimeout(collectWhenIdle, SETTLED_MS).unref();
}

/** Lets V8 optimize code once the process is busy. Otherwise it would also optimize the timers of an idle process, at a cost of 5 MB. */
function optimizeWhenBusy(): void {
  const isBusy = createBusyCheck(processorTime());
  const timer = setInterval(() => {
    if (!isBusy(processorTime())) return;
    clearInterval(timer);
    setFlag("--turbofan");
  }, CHECK_INTERVAL_MS).unref();
}

/** Returns the processor time of all threads so far, in ms. */
function processorTime(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/**
 * Returns a function that returns whether the process is busy. It is called every `CHECK_INTERVAL_MS` with the processor time of the
 * process so far, in ms. A small share that lasts counts as much as a large one for a short time.
 */
export function createBusyCheck(startedMs: number): (usedMs: number) => boolean {
  let excessMs = 0;
  let before = startedMs;
  return (usedMs) => {
    excessMs = Math.max(0, excessMs + usedMs - before - IDLE_SHARE * CHECK_INTERVAL_MS);
    before = usedMs;
    return excessMs > MAX_EXCESS_MS;
  };
}

/** Returns 5 to 15 MB to the system. It stops the process for about 20 ms, so it is not done under load. */
function collectGarbage(): void {
  // Node keeps its cache of compiled code in memory until it has written it, by itself at the end. A process that is killed writes none.
  flushCompileCache();
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
  // Code is cached for the same flags (code-cache.ts).
  setFlagsFromString("--no-expose-gc");
}
