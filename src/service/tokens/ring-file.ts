import { open, rm } from "node:fs/promises";
import { errorCode } from "../../platform/files/error-code.ts";
import { readProtected } from "../../platform/files/protection.ts";
import { createFile, replaceFile } from "../../platform/files/write-atomically.ts";
import { KeyRingFault, parseRing, type Ring, writeRing } from "./ring.ts";

const ABSENT = "there is none; `session-service keys create` (in a clone: `npm run keys -- create`) makes one";

/** Returns the text of a ring file. If `reader` is an operator who is root, the file may be another user's. @throws KeyRingFault */
export async function readRingText(
  path: string,
  reader: "service" | "operator" = "operator",
  flag?: number,
): Promise<string> {
  const protection = { forbids: "read", mode: 0o600, rootUsesAny: reader === "operator" } as const;
  const read = await readProtected(path, protection, flag);
  if (!read.ok) throw atPath(path, new KeyRingFault(read.isAbsent ? ABSENT : read.fault, read.isAbsent));
  return read.text;
}

/** Reads the ring in a file, as an operator does. @throws KeyRingFault */
export async function readRing(path: string): Promise<Ring> {
  const text = await readRingText(path);
  try {
    return parseRing(text);
  } catch (error) {
    throw error instanceof KeyRingFault ? atPath(path, error) : error;
  }
}

export function atPath(path: string, fault: KeyRingFault): KeyRingFault {
  return new KeyRingFault(`key ring ${path}: ${fault.message}`, fault.absent);
}

/** Creates the file, complete at once. Returns false if it existed: of several processes one creates it. @throws KeyRingFault */
export function createRingFile(path: string, ring: Ring): Promise<boolean> {
  return unlessItFails(path, "created", () => createFile(path, writeRing(ring)));
}

/**
 * Changes the ring in a file. Only one process changes it at a time, and readers see the old ring or the new one. The file's owner and
 * mode stay, so that the service can still read it after a change by root. If this throws, the file is unchanged.
 */
export async function changeRingFile(path: string, change: (ring: Ring) => Ring): Promise<Ring> {
  const lock = `${path}.lock`;
  try {
    await (await open(lock, "wx", 0o600)).close();
  } catch (error) {
    if (errorCode(error) !== "EEXIST") throw atPath(path, new KeyRingFault(`cannot be locked (${errorCode(error)})`));
    throw atPath(path, new KeyRingFault(`another command is changing it; if none is, remove ${lock}`));
  }
  try {
    const ring = change(await readRing(path));
    const text = writeRing(ring);
    parseRing(text); // A ring that cannot be parsed must not be written.
    await unlessItFails(path, "changed", () => replaceFile(path, text));
    return ring;
  } finally {
    await rm(lock, { force: true });
  }
}

/** Converts an error of the file system to a KeyRingFault, which is reported in one line. */
async function unlessItFails<T>(path: string, what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw atPath(path, new KeyRingFault(`cannot be ${what} (${errorCode(error)})`));
  }
}
