/** What the system allows the process. */
import { readFileSync } from "node:fs";

/** Files that are no connections of clients: stores, upstreams, the log, keys, those of the runtime. */
export const OTHER_FILES = 64;

export type Resources = {
  /** Files that it may open. */
  readonly openFiles: number;
  /** Bytes that it may take. */
  readonly memory: number;
};

/** Infinity: what is not known, or not limited. */
export function resources(): Resources {
  // 0 where it is not known, and beyond any machine where there is no limit.
  const memory = process.constrainedMemory();
  return { openFiles: openFileLimit(), memory: memory > 0 ? memory : Number.POSITIVE_INFINITY };
}

function openFileLimit(): number {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync("/proc/self/limits", "utf8"))?.[1];
    return limit === undefined ? Number.POSITIVE_INFINITY : Number(limit);
  } catch {
    return Number.POSITIVE_INFINITY;
  }
}
