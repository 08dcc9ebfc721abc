/** Backs up the embedded store, the key ring and the admin token. */
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { errorCode, errorMessage } from "../../../platform/files/error-code.ts";
import { makeDirectory } from "../../../platform/files/make-directory.ts";
import { ownerFault } from "../../../platform/files/protection.ts";
import { type Config, readConfig } from "../../config/config.ts";
import { DATA_FILES } from "../../config/data-dir.ts";
import type { Environment } from "../../config/reader.ts";
import { checkDatabase } from "../../store/embedded/check.ts";
import { copyDatabase } from "../../store/embedded/copy.ts";
import { KeyRingFault } from "../../tokens/ring.ts";
import { readRing } from "../../tokens/ring-file.ts";
import { CommandError, type Context, withRefusals } from "../context.ts";
import { createProgress } from "../output/progress.ts";

export async function backUp(context: Context, directory: string, options: { readonly json?: boolean }): Promise<void> {
  const { files } = embeddedFiles(context.env);
  if (!existsSync(files.store)) throw new CommandError(`there is no store at ${files.store}`);
  await makeEmpty(directory);
  const to = filesOf(directory);
  try {
    await copyAll(files, to);
  } catch (error) {
    // The directory was empty before. The next attempt needs an empty one, so the incomplete backup is removed.
    for (const name of readdirSync(directory)) rmSync(join(directory, name));
    throw error;
  }
  const { size } = statSync(to.store);
  if (options.json) context.print(JSON.stringify({ directory, bytes: size }));
  else context.print(`backed up to ${directory}: ${(size / 1_000_000).toFixed(1)} MB`);
}

async function copyAll(files: Files, to: Files): Promise<void> {
  const hasToken = existsSync(files.adminToken);
  for (const part of hasToken ? Object.values(to) : [to.store, to.keys]) markIncomplete(part);
  sync(dirname(to.store));
  await copyStore(files.store, to.store);
  markComplete(to.store);
  // The key ring is copied after the store, so that it contains every key that a token in the copy may need.
  await withRefusals([KeyRingFault], () => readRing(files.keys));
  copyWhole(files.keys, to.keys);
  markComplete(to.keys);
  if (!hasToken) return;
  copyWhole(files.adminToken, to.adminToken);
  markComplete(to.adminToken);
}

/** Each part of a backup has a mark of this name until it is complete, so that a backup that was killed tells which parts it lacks. */
const markOf = (part: string) => `${part}.incomplete`;
const markIncomplete = (part: string) => writeFileSync(markOf(part), "", { mode: 0o600 });

function markComplete(part: string): void {
  rmSync(markOf(part));
  sync(dirname(part));
}

/** Returns the names of the parts that a backup lacks because it was interrupted. */
export const incompleteParts = (backup: Files): readonly string[] =>
  Object.values(backup)
    .filter((part) => existsSync(markOf(part)))
    .map((part) => basename(part));

/**
 * Creates the directory of a backup, or accepts an empty one whose owner is trusted: the owner could read or replace the backup.
 * @throws CommandError
 */
async function makeEmpty(directory: string): Promise<void> {
  try {
    makeDirectory(directory);
    const fault = await ownerFault(directory);
    if (fault !== undefined) throw new CommandError(`${directory} ${fault}`);
    requireEmpty(directory);
    chmodSync(directory, 0o700);
    requireEmpty(directory); // Until now, others may have been able to write to it.
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`${directory} cannot be used (${errorCode(error)})`);
  }
}

function requireEmpty(directory: string): void {
  if (readdirSync(directory).length === 0) return;
  const interrupted = incompleteParts(filesOf(directory)).length > 0;
  throw new CommandError(
    `${directory} ${interrupted ? "has a backup that was interrupted: remove it" : "is not empty"}`,
  );
}

/** The files of a service on its embedded store, or those of a backup. */
export type Files = {
  readonly store: string;
  readonly keys: string;
  /** This file exists only if the service has generated its own token. */
  readonly adminToken: string;
};

export const filesOf = (directory: string): Files => ({
  store: join(directory, DATA_FILES.store),
  keys: join(directory, DATA_FILES.keys),
  adminToken: join(directory, DATA_FILES.adminToken),
});

/** Returns the files of the service. @throws CommandError if it does not use the embedded store */
export function embeddedFiles(env: Environment): { readonly config: Config; readonly files: Files } {
  const config = readConfig(env);
  if (config.redis !== undefined) {
    throw new CommandError("REDIS_URL is set: sessions are in Redis; docs/tasks/backup.md has how to copy it");
  }
  return { config, files: { ...filesOf(config.dataDir), keys: config.keysFile } };
}

/** Copies a store, including its -wal file, to a new file for its owner alone, and flushes it to the disk. @throws CommandError */
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
    // A copy by the system would have the mode of the original until it is changed, so others could open it in the meantime.
    writeFileSync(to, readFileSync(from), { flag: "wx", mode: 0o600, flush: true });
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
