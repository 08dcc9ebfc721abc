/** Replaces files atomically: readers see the old file, the new one or none, but never a part. */
import { randomUUID } from "node:crypto";
import type { Stats } from "node:fs";
import { link, mkdir, open, readdir, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { errorCode } from "./error-code.ts";

/** A temporary file that is older than this, in ms, belongs to a writer that was killed. */
const STALE_MS = 60_000;
const TEMPORARY = /^\.[0-9a-f-]{36}\.tmp$/;

/**
 * Creates a file (0600, its directories 0700) unless it exists. Of several processes that start at once exactly one creates it.
 *
 * @returns false if the file existed
 */
export async function createFile(path: string, text: string): Promise<boolean> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  return viaTemporary(path, text, {}, async (temporary) => {
    try {
      await link(temporary, path); // Unlike `rename`, `link` fails if the name exists.
      return true;
    } catch (error) {
      if (errorCode(error) === "EEXIST") return false;
      throw error;
    }
  });
}

/** Replaces a file. Its owner and mode stay, and a link stays a link. */
export async function replaceFile(path: string, text: string): Promise<void> {
  const file = await realpath(path);
  await viaTemporary(file, text, await stat(file), (temporary) => rename(temporary, file));
}

async function viaTemporary<T>(
  path: string,
  text: string,
  like: Partial<Pick<Stats, "mode" | "uid" | "gid">>,
  place: (temporary: string) => Promise<T>,
): Promise<T> {
  await removeStaleTemporaries(path);
  const temporary = `${path}.${randomUUID()}.tmp`; // A process id would not be unique: it is often the same in several containers.
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(text);
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

/** Removes files that a killed writer of this file left behind: they may hold secrets. */
async function removeStaleTemporaries(path: string): Promise<void> {
  const directory = dirname(path);
  const prefix = basename(path);
  for (const name of await readdir(directory)) {
    if (!name.startsWith(prefix) || !TEMPORARY.test(name.slice(prefix.length))) continue;
    const temporary = join(directory, name);
    const { mtimeMs } = await stat(temporary).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }));
    if (Date.now() - mtimeMs > STALE_MS) await rm(temporary, { force: true });
  }
}

/** Flushes a directory, so that a new name survives a power cut. */
async function syncDirectory(path: string): Promise<void> {
  if (process.platform === "win32") return; // Some systems cannot open directories.
  const directory = await open(path, "r");
  await directory.sync().finally(() => directory.close());
}
