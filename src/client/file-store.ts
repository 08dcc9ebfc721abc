import { randomUUID } from "node:crypto";
import { open, readdir, readFile, readlink, realpath, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import type { StoredTokens, TokenStore } from "./token-store.ts";

/** The mode of the file: only its owner may read or write it. */
const MODE = 0o600;

/** A temporary file that is older than this, in ms, was left by a process that was killed: writing takes far less time. */
const MAX_WRITING_MS = 60_000;

const TEMPORARY = /^\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp$/;

/**
 * Keeps the tokens in a file, whose directory must exist; a symbolic link is followed. The file is replaced by a rename, so that other
 * processes never read a part of it.
 * @throws TypeError if the path is missing
 */
export function createFileStore(link: string): TokenStore {
  if (typeof link !== "string" || link === "") throw new TypeError("createFileStore needs the path of a file");
  return {
    load: () => load(link),
    async save(tokens, replacing) {
      const path = await fileOf(link);
      // If this process was suspended for long, another process has deleted its temporary file as a leftover, so the file is written again.
      await write(path, tokens, replacing).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return write(path, tokens, replacing);
        throw error;
      });
      await removeLeftovers(path);
    },
    async prepare(tokens) {
      await rm(await writeTemporary(await fileOf(link), tokens), { force: true });
    },
    async clear() {
      const path = await fileOf(link);
      await rm(path, { force: true });
      await removeLeftovers(path);
    },
  };
}

/** Returns the path of the file itself. A rename onto a link would leave the old tokens, and the key, in the link's target. */
async function fileOf(link: string): Promise<string> {
  try {
    return await realpath(link);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    // The file does not exist yet, or is a link to a file that does not exist.
    const target = await readlink(link).catch(() => undefined);
    // The target may be a link as well. Its `..` starts from the real directory of this link.
    return target === undefined ? link : fileOf(resolve(await realpath(dirname(link)), target));
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
  const temporary = await writeTemporary(path, tokens);
  try {
    // The stored token is compared last, so that another process has hardly any time to replace the file before the rename.
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

/** Writes tokens to a temporary file, and returns its path. The tokens are on the disk then. */
async function writeTemporary(path: string, tokens: StoredTokens): Promise<string> {
  const temporary = `${path}.${randomUUID()}.tmp`;
  const file = await open(temporary, "wx", MODE);
  try {
    await file.writeFile(`${JSON.stringify(tokens)}\n`);
    await file.sync();
    await file.close();
    return temporary;
  } catch (error) {
    await file.close().catch(() => {});
    await rm(temporary, { force: true });
    throw error;
  }
}

/**
 * Flushes the rename to the disk, where the system supports it. After a loss of power, the file could otherwise contain the previous
 * refresh token, and presenting that would end the session.
 */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory).catch(() => undefined);
  await handle?.sync().catch(() => {});
  await handle?.close();
}

/** Removes the temporary files of killed processes, since these contain tokens and the key. Files that cannot be removed are ignored. */
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

/** Returns the current time of the file system, in ms. By a clock that is ahead of it, files that others just write would seem old. */
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

/** Parses the file. @throws Error if the contents are invalid. Its message does not contain them, because they may include a token */
function parse(text: string, path: string): StoredTokens {
  try {
    const value = JSON.parse(text) as Partial<StoredTokens> | null;
    const { access, ...rest } = value ?? {};
    // An access token that is not a text is left out. The next call then refreshes the tokens.
    if (typeof rest.refreshToken === "string")
      return (typeof access?.token === "string" ? value : rest) as StoredTokens;
  } catch {
    // A text that is not JSON is refused below, like JSON without a refresh token.
  }
  throw new Error(`${path} holds no tokens`);
}
