/** Replaces files atomically: readers see the old file, the new one or none, but never a part. */
import { randomUUID } from "node:crypto";
import { fsync, type Stats } from "node:fs";
import { link, open, readdir, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { promisify } from "node:util";
import { errorCode } from "./error-code.ts";
import { makeDirectory } from "./make-directory.ts";

/** A temporary file that is older than this, in ms, was left by a process that was killed: writing takes far less time. */
const MAX_WRITING_MS = 60_000;
/** Flushes a file by its descriptor: `FileHandle.sync` does not exist where Yarn has replaced `node:fs` (Plug'n'Play). */
const flush = promisify(fsync);
const TEMPORARY = /^\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp$/;

/**
 * Creates a file (0600, its directories 0700) unless it exists. If several processes start at once, exactly one creates it.
 *
 * @returns false if the file existed
 */
export async function createFile(path: string, text: string): Promise<boolean> {
  makeDirectory(dirname(path));
  return viaTemporary(path, text, {}, async (temporary) => {
    try {
      await link(temporary, path); // Unlike `rename`, `link` fails if the name exists.
      await syncDirectory(dirname(path));
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
  await viaTemporary(file, text, await stat(file), async (temporary) => {
    await rename(temporary, file);
    await syncDirectory(dirname(file));
  });
}

/** Writes a text to a temporary file beside the path, and calls `place` once it is on disk. @param like owner and mode; default: 0600 */
export async function viaTemporary<T>(
  path: string,
  text: string,
  like: Partial<Pick<Stats, "mode" | "uid" | "gid">>,
  place: (temporary: string) => Promise<T>,
): Promise<T> {
  await removeLeftovers(path);
  const temporary = temporaryOf(path);
  try {
    const file = await open(temporary, "wx", 0o600);
    try {
      await file.writeFile(text);
      if (like.mode !== undefined) await file.chmod(like.mode & 0o777);
      if (like.uid !== undefined && like.gid !== undefined && process.getuid?.() === 0) {
        await file.chown(like.uid, like.gid);
      }
      await flush(file.fd);
    } finally {
      await file.close();
    }
    return await place(temporary);
  } finally {
    await rm(temporary, { force: true });
  }
}

/** A process id would not be unique: it is often the same in several containers. */
const temporaryOf = (path: string) => `${path}.${randomUUID()}.tmp`;

/** Removes the temporary files of killed writers, since these may hold secrets. Files that cannot be removed are ignored. */
export async function removeLeftovers(path: string): Promise<void> {
  const [directory, name] = [dirname(path), basename(path)];
  const names = await readdir(directory).catch(() => []);
  const leftovers = names.filter((other) => other.startsWith(name) && TEMPORARY.test(other.slice(name.length)));
  const now = leftovers.length === 0 ? undefined : await fileTime(path).catch(() => undefined);
  for (const leftover of leftovers) {
    const file = join(directory, leftover);
    const since = await stat(file).catch(() => undefined);
    if (since !== undefined && now !== undefined && now - since.mtimeMs > MAX_WRITING_MS)
      await rm(file, { force: true }).catch(() => {});
  }
}

/** Returns the current time of the file system, in ms. A clock that is ahead of it would make files that others are writing seem old. */
async function fileTime(path: string): Promise<number> {
  const probe = temporaryOf(path);
  const file = await open(probe, "wx", 0o600);
  try {
    return (await file.stat()).mtimeMs;
  } finally {
    await file.close();
    await rm(probe, { force: true });
  }
}

/** Flushes a directory, so that a new name survives a power cut. */
export async function syncDirectory(path: string): Promise<void> {
  if (process.platform === "win32") return; // Some systems cannot open directories.
  const directory = await open(path, "r");
  await flush(directory.fd).finally(() => directory.close());
}
