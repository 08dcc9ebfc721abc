import { randomUUID } from "node:crypto";
import { open, readdir, readFile, readlink, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { StoredTokens, TokenStore } from "./token-store.ts";

/** Only its owner may read or write the file. */
const MODE = 0o600;

/** Writing takes far less, in ms: an older temporary file was left by a process that was killed. */
const MAX_WRITING_MS = 60_000;

const TEMPORARY = /^\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp$/;

/**
 * Keeps the tokens in a file, whose directory has to exist. A new file replaces the old one by a rename, so that others read either of
 * them, and never a part. A symbolic link stays, and the file that it leads to is replaced.
 */
export function createFileStore(link: string): TokenStore {
  return {
    load: () => load(link),
    async save(tokens, replacing) {
      const path = await fileOf(link);
      // A process that was stopped for long loses its temporary file to another one, and writes again.
      await write(path, tokens, replacing).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return write(path, tokens, replacing);
        throw error;
      });
      await removeLeftovers(path);
    },
    async clear() {
      const path = await fileOf(link);
      await rm(path, { force: true });
      await removeLeftovers(path);
    },
  };
}

/** Returns the path of the file itself. A rename onto a link would leave the old tokens, and the key, where the link led to. */
async function fileOf(link: string): Promise<string> {
  try {
    return await realpath(link);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    // There is nothing yet, or a link to nothing.
    const target = await readlink(link).catch(() => undefined);
    return target === undefined ? link : resolve(dirname(link), target);
  }
}

async function load(path: string): Promise<StoredTokens | undefined> {
  const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  return text === undefined ? undefined : parse(text, path);
}

async function write(path: string, tokens: StoredTokens, replacing: string | undefined): Promise<void> {
  const temporary = `${path}.${randomUUID()}.tmp`;
  try {
    const file = await open(temporary, "wx", MODE);
    try {
      await file.writeFile(`${JSON.stringify(tokens)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    // Nothing but the rename comes between this look and the replacement.
    const isCurrent = replacing === undefined || (await load(path))?.refreshToken === replacing;
    if (isCurrent) {
      await rename(temporary, path);
      await syncDirectory(dirname(path));
    } else await rm(temporary, { force: true });
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/**
 * Writes the rename to the disk. After a loss of power the file would otherwise hold the refresh token of before, which ends the session
 * when it is presented. Not every system and file system can do it.
 */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory).catch(() => undefined);
  await handle?.sync().catch(() => {});
  await handle?.close();
}

/** Removes the temporary files of processes that were killed: they hold a token, and the key. What cannot be removed is left. */
async function removeLeftovers(path: string): Promise<void> {
  const directory = dirname(path);
  const name = basename(path);
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

/**
 * Returns the time by which the file system dates files, in ms. By the clock of a process, which may be wrong, the files that others are
 * writing could seem to be old.
 */
async function fileTime(path: string): Promise<number> {
  const probe = `${path}.${randomUUID()}.tmp`;
  const file = await open(probe, "wx", MODE);
  try {
    return (await file.stat()).mtimeMs;
  } finally {
    await file.close();
    await rm(probe, { force: true });
  }
}

/** @throws Error for a file that holds something else. Its text is not in the message: it may hold a token. */
function parse(text: string, path: string): StoredTokens {
  try {
    const value = JSON.parse(text) as Partial<StoredTokens> | null;
    const { access, ...rest } = value ?? {};
    // Without a usable access token the next call refreshes.
    if (typeof rest.refreshToken === "string")
      return (typeof access?.token === "string" ? value : rest) as StoredTokens;
  } catch {
    // It is refused below.
  }
  throw new Error(`${path} holds no tokens`);
}
