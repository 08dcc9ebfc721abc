/** Keeps small the memory of a process that starts once and then serves for long. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** How long after the start its garbage is collected, in ms. Before, V8 would keep the memory for the next allocations. */
const SETTLED_MS = 10_000;
/** The share of its time that an idle process works. A busier one collects its garbage without this. */
const IDLE_UTILIZATION = 0.1;

/** Sets a flag of V8. Those that were given to Node take precedence. */
export function setFlag(flag: string): void {
  const [name = ""] = flag.replace(/^--(no-)?/, "").split("=");
  if (!process.execArgv.some((given) => given.replaceAll("_", "-").includes(name))) setFlagsFromString(flag);
}

/** Runs the start of a process, and returns its memory to the system some seconds later. */
export async function startLean(start: () => Promise<void>): Promise<void> {
  // The code of a start runs once. Optimizing it takes processor time, and memory for the compiler.
  setFlag("--no-turbofan");
  await start();
  setFlag("--turbofan");
  const started = performance.eventLoopUtilization();
  const collectWhenIdle = () => {
    if (performance.eventLoopUtilization(started).utilization < IDLE_UTILIZATION) collectGarbage();
  };
  setTimeout(collectWhenIdle, SETTLED_MS).unref();
}

/** Returns 5 to 15 MB to the system. It stops the process for about 20 ms, so it is not done under load. */
function collectGarbage(): void {
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
}
