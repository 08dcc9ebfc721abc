/** The files of a service on its embedded store, and those of a backup. */
import { chmodSync, closeSync, constants, copyFileSync, fsyncSync, openSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Config, readConfig } from "../../config/config.ts";
import type { Environment } from "../../config/reader.ts";
import { errorMessage } from "../../platform/files/error-code.ts";
import { checkDatabase } from "../../store/embedded/check.ts";
import { copyDatabase } from "../../store/embedded/copy.ts";
import { ADMIN_TOKEN_FILE } from "../../tokens/own-admin-token.ts";
import { CommandError } from "../exit.ts";
import { createProgress } from "../output/progress.ts";

export type Files = {
  readonly store: string;
  readonly keys: string;
  /** This file exists only if the service has generated its own token. */
  readonly adminToken: string;
};

export const filesOf = (directory: string): Files => ({
  store: join(directory, "sessions.db"),
  keys: join(directory, "keys.json"),
  adminToken: join(directory, ADMIN_TOKEN_FILE),
});

/** Returns the files of the service. @throws CommandError if it does not use the embedded store */
export function embeddedFiles(env: Environment): { readonly config: Config; readonly files: Files } {
  const config = readConfig(env);
  if (config.redis !== undefined) {
    throw new CommandError("REDIS_URL is set: sessions are in Redis; docs/operations.md has how to copy it");
  }
  return { config, files: { ...filesOf(config.dataDir), keys: config.keysFile } };
}

/**
 * Copies a store, including its -wal file, to a new file that only its owner can read, and flushes it to the disk.
 * @throws CommandError
 */
export async function copyStore(from: string, to: string): Promise<void> {
  const progress = createProgress("copying", 100);
  const umask = process.umask(0o077); // With this mask, SQLite creates a file that other users cannot read.
  try {
    await copyDatabase(from, to, (share) => progress.update(Math.floor(share * 100)));
  } catch (error) {
    throw new CommandError(`${from} cannot be copied: ${errorMessage(error)}`);
  } finally {
    process.umask(umask);
    progress.end();
  }
  const problem = checkDatabase(to);
  if (problem !== undefined) throw new CommandError(`the copy ${to} is damaged (${problem}): ${from} may be, too`);
  sync(to);
  sync(dirname(to));
}

/** Copies a file to a new file that only its owner can read, and flushes it to the disk. @throws CommandError */
export function copyWhole(from: string, to: string): void {
  try {
    copyFileSync(from, to, constants.COPYFILE_EXCL);
    chmodSync(to, 0o600);
    sync(to);
    sync(dirname(to));
  } catch (error) {
    throw new CommandError(`${from} cannot be copied: ${(error as Error).message}`);
  }
}

export function sync(path: string): void {
  const file = openSync(path, "r");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}
