import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { errorCode } from "../../platform/files/error-code.ts";
import { ownerFault } from "../../platform/files/protection.ts";
import { KeyRingFault } from "../../tokens/ring.ts";
import { readRing } from "../../tokens/ring-file.ts";
import type { Context } from "../context.ts";
import { CommandError, refusing } from "../exit.ts";
import { copyStore, copyWhole, embeddedFiles, type Files, filesOf } from "./files.ts";

export async function backUp(context: Context, directory: string, options: { readonly json?: boolean }): Promise<void> {
  const { files } = embeddedFiles(context.env);
  if (!existsSync(files.store)) throw new CommandError(`there is no store at ${files.store}`);
  await makeEmpty(directory);
  const to = filesOf(directory);
  try {
    await copyAll(files, to);
  } catch (error) {
    // The directory was empty when the backup began. The incomplete backup is removed, because the next attempt needs an empty directory.
    for (const name of readdirSync(directory)) rmSync(join(directory, name));
    throw error;
  }
  const { size } = statSync(to.store);
  if (options.json) context.print(JSON.stringify({ directory, bytes: size }));
  else context.print(`backed up to ${directory}: ${(size / 1_000_000).toFixed(1)} MB`);
}

async function copyAll(files: Files, to: Files): Promise<void> {
  await copyStore(files.store, to.store);
  // The key ring is copied after the store, so that it contains every key that a token in the copy may need.
  await refusing([KeyRingFault], () => readRing(files.keys));
  copyWhole(files.keys, to.keys);
  if (existsSync(files.adminToken)) copyWhole(files.adminToken, to.adminToken);
}

/**
 * Creates the directory of a backup, or accepts an existing empty one. The owner of the directory must be trusted, because the owner could
 * read or replace the backup. @throws CommandError
 */
async function makeEmpty(directory: string): Promise<void> {
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const fault = await ownerFault(directory);
    if (fault !== undefined) throw new CommandError(`${directory} ${fault}`);
    chmodSync(directory, 0o700);
    if (readdirSync(directory).length > 0) throw new CommandError(`${directory} is not empty`);
  } catch (error) {
    if (error instanceof CommandError) throw error;
    throw new CommandError(`${directory} cannot be used (${errorCode(error)})`);
  }
}
