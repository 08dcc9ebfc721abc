/** Figures of a process, read from /proc. They are undefined on systems without /proc. */
import { readdirSync, readFileSync } from "node:fs";

function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

/** Returns the resident memory of a process, in MiB. */
export function residentMemory(pid: number): number | undefined {
  return orUndefined(() => {
    const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return Number(kilobytes) / 1024;
  });
}

/** Returns the CPU time of all threads so far, in s. Of all measures, other load on the machine disturbs it least. */
export function cpuTime(pid: number): number | undefined {
  return orUndefined(() => {
    const tasks = `/proc/${pid}/task`;
    const times = readdirSync(tasks).map((task) => readFileSync(`${tasks}/${task}/schedstat`, "utf8").split(" ")[0]);
    return times.reduce((sum, nanoseconds) => sum + Number(nanoseconds), 0) / 1e9;
  });
}
