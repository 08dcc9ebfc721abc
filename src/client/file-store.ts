import { readFile, readlink, realpath, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { removeLeftovers, syncDirectory, viaTemporary } from "../platform/files/write-atomically.ts";
import type { StoredTokens, TokenStore } from "./token-store.ts";

const textOf = (tokens: StoredTokens) => `${JSON.stringify(tokens)}\n`;

/**
 * Keeps the tokens in a file (0600), whose directory must exist; a symbolic link is followed. The file is replaced by a rename, so that
 * other processes never read a part of it.
 * @throws TypeError if the path is missing
 */
export function createFileStore(link: string): TokenStore {
  if (typeof link !== "string" || link === "") throw new TypeError("createFileStore needs the path of a file");
  return {
    load: () => load(link),
    async save(tokens, replacing) {
      const path = await fileOf(link);
      const write = () =>
        viaTemporary(path, textOf(tokens), {}, async (temporary) => {
          // The stored token is compared last, so that another process has hardly any time to replace the file before the rename.
          if (replacing !== undefined && (await load(path))?.refreshToken !== replacing) return;
          await rename(temporary, path);
          // Not every system can flush a directory. After a loss of power, the file could then hold the previous refresh token again, and
          // presenting that would end the session.
          await syncDirectory(dirname(path)).catch(() => {});
        });
      // If this process was suspended for long, another process has deleted its temporary file as a leftover, so the file is written again.
      await write().catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return write();
        throw error;
      });
    },
    async prepare(tokens) {
      await viaTemporary(await fileOf(link), textOf(tokens), {}, async () => {});
    },
    async clear(ended) {
      const path = await fileOf(link);
      if (ended === undefined || (await load(path))?.refreshToken === ended) await rm(path, { force: true });
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
