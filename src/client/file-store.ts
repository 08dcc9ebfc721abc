import { randomUUID } from "node:crypto";
import { open, readFile, rename, rm } from "node:fs/promises";
import type { StoredTokens, TokenStore } from "./token-store.ts";

/** Only its owner may read or write the file. */
const MODE = 0o600;

/**
 * Keeps the tokens in a file, whose directory has to exist. A new file replaces the old one by a rename, so that others read either of
 * them, and never a part.
 */
export function createFileStore(path: string): TokenStore {
  return {
    async load() {
      const text = await readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return undefined;
        throw error;
      });
      return text === undefined ? undefined : parse(text, path);
    },
    async save(tokens) {
      const temporary = `${path}.${randomUUID()}.tmp`;
      try {
        const file = await open(temporary, "wx", MODE);
        try {
          await file.writeFile(`${JSON.stringify(tokens)}\n`);
          await file.sync();
        } finally {
          await file.close();
        }
        await rename(temporary, path);
      } catch (error) {
        await rm(temporary, { force: true });
        throw error;
      }
    },
    clear: () => rm(path, { force: true }),
  };
}

/** @throws Error for a file that holds something else. Its text is not in the message: it may hold a token. */
function parse(text: string, path: string): StoredTokens {
  try {
    const value = JSON.parse(text) as Partial<StoredTokens> | null;
    if (typeof value?.refreshToken === "string") return value as StoredTokens;
  } catch {
    // It is refused below.
  }
  throw new Error(`${path} holds no tokens`);
}
