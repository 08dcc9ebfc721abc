import { readFileSync } from "node:fs";

/** How many open files are not connections of clients: stores, upstreams, the log, keys, and files of the runtime. */
const OTHER_FILES = 64;
/** The memory under load without connections and bodies, in bytes. docs/why/security.md has the measurement. */
const OTHER_MEMORY = 256 * 1024 * 1024;
/** The memory of an open connection, in bytes. This is the value for HTTP/2, which takes more than HTTP/1.1. */
const CONNECTION_MEMORY = 36 * 1024;
/** A body that is arriving takes this many times its own bytes of memory. */
const BODY_WEIGHT = 1.5;
/** Connections and bodies share a budget of memory. Bodies may take this share of it at most. */
const BODIES_SHARE = 0.4;

export type Resources = {
  readonly openFiles: number;
  /** How many bytes of memory the process may use. */
  readonly memory: number;
};

/** Returns how many connections and bytes of arriving bodies the process can have at a time. Either number may be 0. */
export function affordable(
  { openFiles, memory }: Resources,
  wantedBodyBytes: number,
): { readonly connections: number; readonly bodyBytes: number } {
  const left = Math.max(0, memory - OTHER_MEMORY);
  const bodyBytes = Math.min(wantedBodyBytes, (left * BODIES_SHARE) / BODY_WEIGHT);
  const byMemory = Math.floor((left - bodyBytes * BODY_WEIGHT) / CONNECTION_MEMORY);
  return { connections: Math.max(0, Math.min(openFiles - OTHER_FILES, byMemory)), bodyBytes };
}

/** Returns the resources of this process; Infinity if a limit is not known or does not exist. */
export function resources(): Resources {
  // Node returns 0 if the limit is not known, and an impossibly large number if there is none.
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
