import { randomUUID } from "node:crypto";
import type { Stats } from "node:fs";
import { link, mkdir, open, readFile, realpath, rename, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { KeyRingFault, parseRing, type Ring, writeRing } from "./ring.ts";

/** The text of a ring file. Throws KeyRingFault when it is not there, not readable or open to strangers. */
export async function readRingText(path: string): Promise<string> {
  try {
    const { mode } = await stat(path);
    // As ssh does: a secret that anybody may read, or another may replace, is not used. The group may read,
    // since orchestrators mount secrets so. (Windows has no such bits.)
    if (process.platform !== "win32" && (mode & 0o027) !== 0) {
      throw new KeyRingFault(`its mode ${(mode & 0o777).toString(8)} lets others read or change it: chmod 600 it`);
    }
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof KeyRingFault) throw atPath(path, error);
    const code = errorCode(error);
    if (code !== "ENOENT") throw atPath(path, new KeyRingFault(`cannot be read (${code})`));
    throw atPath(path, new KeyRingFault("there is none; `npm run keys -- create` makes one", true));
  }
}

/** The ring in a file. Throws KeyRingFault. */
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

/**
 * Creates the file unless there is one. Whoever reads sees no file or a whole one, and of several processes
 * that start at once exactly one creates it. Throws KeyRingFault.
 *
 * @returns false when there was a file already
 */
export function createRingFile(path: string, ring: Ring): Promise<boolean> {
  return unlessItFails(path, "created", async () => {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    return viaTemporary(path, ring, {}, async (temporary) => {
      try {
        await link(temporary, path); // unlike rename, fails when the name is taken
        return true;
      } catch (error) {
        if (errorCode(error) === "EEXIST") return false;
        throw error;
      }
    });
  });
}

/**
 * Changes the ring in a file, one changer at a time; readers see the old ring or the new one. Owner and mode
 * stay: an operator who is root must not lock the service out.
 *
 * Throws KeyRingFault, and whatever `change` throws; the file is as it was then.
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
    parseRing(writeRing(ring)); // never write what could not be read
    await unlessItFails(path, "changed", async () => {
      const file = await realpath(path); // a link stays a link
      await viaTemporary(file, ring, await stat(file), (temporary) => rename(temporary, file));
    });
    return ring;
  } finally {
    await rm(lock, { force: true });
  }
}

/** What the file system refuses is a fault of the ring, told in a line. */
async function unlessItFails<T>(path: string, what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw atPath(path, new KeyRingFault(`cannot be ${what} (${errorCode(error)})`));
  }
}

/** Writes a whole ring beside `path`, has it put in place, and leaves no copy behind. */
async function viaTemporary<T>(
  path: string,
  ring: Ring,
  like: Partial<Pick<Stats, "mode" | "uid" | "gid">>,
  place: (temporary: string) => Promise<T>,
): Promise<T> {
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(writeRing(ring));
      if (like.mode !== undefined) await file.chmod(like.mode & 0o777);
      if (like.uid !== undefined && like.gid !== undefined && process.getuid?.() === 0) {
        await file.chown(like.uid, like.gid);
      }
      await file.sync();
    } finally {
      await file.close();
    }
    const placed = await place(temporary);
    await syncDirectory(dirname(path));
    return placed;
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Makes a new name survive a power cut. */
async function syncDirectory(path: string): Promise<void> {
  if (process.platform === "win32") return; // where directories cannot be opened
  const directory = await open(path, "r");
  await directory.sync().finally(() => directory.close());
}

function errorCode(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown";
}
