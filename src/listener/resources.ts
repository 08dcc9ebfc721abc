/** What the system allows the process. */
import { readFileSync } from "node:fs";

/** Files that are no connections of clients: stores, upstreams, the log, keys, those of the runtime. */
const OTHER_FILES = 64;
/** What the process takes beside connections and bodies under load, bytes. Measured: docs/security.md. */
const OTHER_MEMORY = 256 * 1024 * 1024;
/** What an open connection takes, bytes: the dearer kind, HTTP/2. */
const CONNECTION_MEMORY = 36 * 1024;
/** What a body on its way weighs, of its own bytes. */
const BODY_WEIGHT = 1.5;
/** The most that bodies on their way take of the memory that is left for them and for connections. */
const BODIES_SHARE = 0.4;

export type Resources = {
  /** Files that it may open. */
  readonly openFiles: number;
  /** Bytes that it may take. */
  readonly memory: number;
};

/**
 * How many connections, and how many bytes of bodies on their way, the process can have at a time. Either may be 0: what the process has to
 * have in any case is added by the caller.
 */
export function affordable(
  { openFiles, memory }: Resources,
  wantedBodyBytes: number,
): { readonly connections: number; readonly bodyBytes: number } {
  const left = Math.max(0, memory - OTHER_MEMORY);
  const bodyBytes = Math.min(wantedBodyBytes, (left * BODIES_SHARE) / BODY_WEIGHT);
  const byMemory = Math.floor((left - bodyBytes * BODY_WEIGHT) / CONNECTION_MEMORY);
  return { connections: Math.max(0, Math.min(openFiles - OTHER_FILES, byMemory)), bodyBytes };
}

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
